-- Which server is waited for: by how many calls of how many requests, in how many pods of which services, for how long.
select
    c.server,
    count(*) as calls,
    count(distinct c.dump_id || '/' || c.request) as requests,
    count(distinct coalesce(d.pod, d.process, d.dump_id)) as pods,
    list_sort(list(distinct d.service)) as services,
    max(r.age_seconds) as oldest_request_seconds
from calls c
join dumps d on d.dump_id = c.dump_id
left join requests r on r.dump_id = c.dump_id and r.request = c.request
group by c.server
order by calls desc, c.server;
