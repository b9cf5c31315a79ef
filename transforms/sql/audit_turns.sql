-- What in these turns breaks a promise.
-- reads   turns (turn_id, kind, trust, tool_status, text, tool_input), allowed (name, value)
-- writes  row_id, reason; one row per breach
with
breaches as (
    select
        turn_id as row_id,
        'its key is there twice' as reason
    from turns
    group by turn_id
    having count(*) > 1
    union all
    select turn_id, 'unknown kind'
    from turns
    where kind not in (select value from allowed where name = 'kind')
    union all
    select turn_id, 'unknown trust'
    from turns
    where trust not in (select value from allowed where name = 'trust')
    union all
    select turn_id, 'unknown tool status'
    from turns
    where tool_status not in (select value from allowed where name = 'tool_status')
    union all
    select turn_id, 'text of a private section'
    from turns
    where contains(lower(text), '<private>') or contains(lower(tool_input), '<private>')
)
select
    row_id,
    reason
from breaches
order by row_id, reason
