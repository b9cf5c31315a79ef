-- How many edges point at each memory, relative to the memory of its scope that most edges point at.
-- reads   memories (memory_id, project_id), edges (source_id, target_id, edge_type), edge_types
-- params  none
-- writes  memory_id, centrality (fraction, 0 to 1; 0 where nothing points); one row per memory
with
pointed as (
    select
        edges.source_id as from_id,
        edges.target_id as memory_id
    from edges
    union all
    -- An edge that holds both ways points at its source as well.
    select
        edges.target_id as from_id,
        edges.source_id as memory_id
    from edges
    join edge_types using (edge_type)
    where edge_types.is_symmetric
),
counted as (
    select
        memory_id,
        count(*) as in_degree
    from pointed
    where from_id <> memory_id
    group by memory_id
),
degrees as (
    select
        memories.memory_id,
        memories.project_id,
        coalesce(counted.in_degree, 0) as in_degree
    from memories
    left join counted using (memory_id)
)
select
    memory_id,
    coalesce(in_degree / nullif(max(in_degree) over (partition by project_id), 0), 0)::double as centrality
from degrees
order by memory_id
