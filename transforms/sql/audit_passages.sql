-- What in the passages of one scope breaks a promise.
-- reads   passages (passage_id, project_id, kind, trust, text), allowed (name, value)
-- params  $scope (project id)
-- writes  row_id, reason; one row per breach
with
breaches as (
    select
        passage_id as row_id,
        'its key is there twice' as reason
    from passages
    group by passage_id
    having count(*) > 1
    union all
    select passage_id, 'of another scope'
    from passages
    where project_id <> $scope
    union all
    select passage_id, 'unknown kind'
    from passages
    where kind not in (select value from allowed where name = 'kind')
    union all
    select passage_id, 'unknown trust'
    from passages
    where trust not in (select value from allowed where name = 'trust')
    union all
    select passage_id, 'text of a private section'
    from passages
    where contains(lower(text), '<private>')
)
select
    row_id,
    reason
from breaches
order by row_id, reason
