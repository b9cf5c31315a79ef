-- Memories within some steps of the given ones, breadth first, along edges in either direction.
-- reads   edges (source_id, target_id)
-- params  $memory_ids (list), $depth (steps, 0 gives the given ones)
-- writes  memory_id, distance (steps from the nearest given memory); one row per memory reached
with recursive
steps as (
    select
        source_id as from_id,
        target_id as to_id
    from edges
    union
    select
        target_id as from_id,
        source_id as to_id
    from edges
),
reached as (
    select
        unnest($memory_ids::varchar[]) as memory_id,
        0 as distance
    union
    select
        steps.to_id as memory_id,
        reached.distance + 1 as distance
    from reached
    join steps on steps.from_id = reached.memory_id
    where reached.distance < $depth
)
select
    memory_id,
    min(distance)::integer as distance
from reached
group by memory_id
order by memory_id
