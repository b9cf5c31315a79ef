-- How each session went: what was asked for again, read again, corrected by the user.
-- reads   turns, events, repeats (event_id, is_re_proposal; of repeated_decisions), plans (project_id,
--         session_id, plan_gaps, plan_repeats; of sessions that carry on a plan)
-- params  $edit_tools, $read_tools (names of tools), $complaint (RE2, case folded),
--         $shown_min_confidence (fraction)
-- writes  project_id, session_id, began_at (UTC instant), prompts, edits, minutes_to_first_edit (null without
--         one), re_read_files, corrections, decisions, duplicate_decisions, re_proposals, plan_gaps,
--         plan_repeats (counts); one row per session
with
spoken as (
    select *
    from turns
    where agent_id is null
),
sessions as (
    select
        project_id,
        session_id,
        min(said_at) as began_at,
        count(*) filter (where kind in ('prompt', 'command')) as prompts,
        count(*) filter (
            where kind = 'rejection' or (kind = 'prompt' and regexp_matches(left(text, 300), $complaint, 'i'))
        ) as corrections,
        count(*) filter (where kind = 'tool_call' and list_contains($edit_tools, tool_name)) as edits,
        count(*) filter (where kind = 'tool_call' and list_contains($read_tools, tool_name))
        - count(distinct text) filter (where kind = 'tool_call' and list_contains($read_tools, tool_name))
            as re_read_files,
        -- From the very first turn: a session may begin with a plan that was handed over, or with a command that the
        -- transcript does not hold, and then the first prompt comes after the first edit.
        epoch(
            min(said_at) filter (where kind = 'tool_call' and list_contains($edit_tools, tool_name))
            - min(said_at)
        ) / 60 as minutes_to_first_edit
    from spoken
    group by project_id, session_id
),
decisions as (
    select
        event_id,
        project_id,
        session_id
    from events
    where memory_type = 'decision' and confidence >= $shown_min_confidence and said_at is not null
),
repeated as (
    select
        project_id,
        session_id,
        count(*) filter (where not is_re_proposal) as duplicate_decisions,
        count(*) filter (where is_re_proposal) as re_proposals
    from decisions
    inner join repeats using (event_id)
    group by project_id, session_id
),
made as (
    select
        project_id,
        session_id,
        count(*) as decisions
    from decisions
    group by project_id, session_id
)
select
    sessions.project_id,
    sessions.session_id,
    sessions.began_at,
    sessions.prompts,
    sessions.edits,
    sessions.minutes_to_first_edit,
    sessions.re_read_files,
    sessions.corrections,
    coalesce(made.decisions, 0) as decisions,
    coalesce(repeated.duplicate_decisions, 0) as duplicate_decisions,
    coalesce(repeated.re_proposals, 0) as re_proposals,
    coalesce(plans.plan_gaps, 0) as plan_gaps,
    coalesce(plans.plan_repeats, 0) as plan_repeats
from sessions
left join made using (project_id, session_id)
left join repeated using (project_id, session_id)
left join plans using (project_id, session_id)
order by
    sessions.project_id,
    sessions.session_id
