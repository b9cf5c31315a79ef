-- Pairs of memories that share files and names, for memories that cannot be compared by vector.
-- reads   terms (memory_id, project_id, term, has_vector), each term once per memory
-- params  $link_max_memories_per_term, $link_above_similarity, $link_neighbours
-- writes  source_id, target_id (source_id < target_id), similarity (fraction, 0 to 1: shared by all terms of both)
with
counted as (
    select
        memory_id,
        count(*) as term_count
    from terms
    group by memory_id
),
telling as (
    select
        project_id,
        term
    from terms
    group by project_id, term
    having count(*) between 2 and $link_max_memories_per_term
),
kept as (
    select terms.*
    from terms
    join telling using (project_id, term)
),
shared as (
    select
        a.memory_id as source_id,
        b.memory_id as target_id,
        count(*) as shared_count
    from kept as a
    join kept as b
        on a.project_id = b.project_id and a.term = b.term and a.memory_id < b.memory_id
    where not (a.has_vector and b.has_vector)
    group by a.memory_id, b.memory_id
),
alike as (
    select
        shared.source_id,
        shared.target_id,
        round(shared_count / (a.term_count + b.term_count - shared_count), 4) as similarity
    from shared
    join counted as a on a.memory_id = shared.source_id
    join counted as b on b.memory_id = shared.target_id
),
both_ways as (
    select
        source_id as memory_id,
        *
    from alike
    where similarity >= $link_above_similarity
    union all
    select
        target_id as memory_id,
        *
    from alike
    where similarity >= $link_above_similarity
),
nearest as (
    select
        source_id,
        target_id,
        similarity
    from both_ways
    qualify row_number() over (
        partition by memory_id order by similarity desc, source_id, target_id
    ) <= $link_neighbours
)
select distinct
    source_id,
    target_id,
    similarity
from nearest
order by
    source_id,
    target_id
