-- Requests followed through all dumps: a call is the request of another dump that has the call's span as its parent. One row
-- for each way, from the request that no dumped call leads to, down to the one that waits.
with recursive hop as (
    select c.dump_id, c.request, r.dump_id as to_dump, r.request as to_request
    from calls c
    join requests r on r.trace_id = c.trace_id and r.parent_span_id = c.span_id and r.dump_id <> c.dump_id
),
way as (
    select r.dump_id, r.request, r.trace_id, r.age_seconds, 1 as hops,
        [r.dump_id || '/' || r.request] as met,
        d.service || ' ' || r.method || ' ' || coalesce(r.route, r.path) as way
    from requests r
    join dumps d using (dump_id)
    where not exists (select 1 from hop h where h.to_dump = r.dump_id and h.to_request = r.request)
    union all
    select r.dump_id, r.request, way.trace_id, way.age_seconds, way.hops + 1,
        list_append(way.met, r.dump_id || '/' || r.request),
        way.way || ' -> ' || d.service || ' ' || r.method || ' ' || coalesce(r.route, r.path)
    from way
    join hop h on h.dump_id = way.dump_id and h.request = way.request
    join requests r on r.dump_id = h.to_dump and r.request = h.to_request
    join dumps d on d.dump_id = r.dump_id
    where way.hops < 64 and not list_contains(way.met, r.dump_id || '/' || r.request)
)
select way.trace_id, way.hops, way.age_seconds, way.way, g.leaf_kind, g.leaf as waits_for, g.completer
from way
join requests r on r.dump_id = way.dump_id and r.request = way.request
left join chains g on g.dump_id = r.dump_id and g."group" = r."group"
where way.hops > 1
  and not exists (select 1 from hop h where h.dump_id = way.dump_id and h.request = way.request)
order by way.hops desc, way.way, way.trace_id;
