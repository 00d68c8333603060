-- Which finding is on how many pods, and since when. A dump that names no pod counts by its process.
select
    f.signature,
    any_value(f.severity) as severity,
    count(distinct d.dump_id) as dumps,
    count(distinct coalesce(d.pod, d.process, d.dump_id)) as pods,
    min(d.time) as first_seen,
    max(d.time) as last_seen,
    list_sort(list(distinct d.service)) as services,
    min(f.title) as title
from findings f
join dumps d using (dump_id)
where f.severity <> 'info'
group by f.signature
order by pods desc, dumps desc, f.signature;
