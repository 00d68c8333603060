-- Findings that the last release of each service has and no earlier one had. The last release is that of the latest dump.
with releases as (
    select service, release, min(time) as since, max(time) as latest
    from dumps
    where status in ('read', 'partial') and release is not null
    group by service, release
),
last as (
    select service, release, since from releases
    qualify row_number() over (partition by service order by latest desc nulls last, since desc nulls last, release desc) = 1
),
seen as (
    select d.service, d.release, f.signature, count(distinct d.dump_id) as dumps, min(d.time) as first_seen, min(f.title) as title
    from findings f
    join dumps d using (dump_id)
    where f.severity <> 'info'
    group by d.service, d.release, f.signature
)
select seen.service, seen.release, seen.signature, seen.dumps, seen.first_seen, seen.title
from seen
join last on last.service = seen.service and last.release = seen.release
where exists (select 1 from releases r where r.service = seen.service and r.release <> seen.release)
  and not exists (
    select 1 from seen earlier
    where earlier.service = seen.service and earlier.signature = seen.signature and earlier.release <> seen.release
)
order by seen.dumps desc, seen.service, seen.signature;
