-- How each session began and what it asked for again, and on which side of the project's first brief it stands.
-- reads   turns, counts (project_id, session_id, prompts, corrections, re_proposals; of metrics),
--         handed (session_id, shown_at, tokens; of sessions that were shown something),
--         asked (project_id, session_id, asked_again; questions that one of the sessions just before had asked)
-- params  $edit_tools, $read_tools (names of tools), $pause_minutes (a longer pause counts as this much),
--         $sessions_back (sessions before this one that count as earlier)
-- writes  project_id, session_id, began_at (UTC instant), side (before, with, without, across),
--         minutes_to_edit, turns_to_edit (null without an edit), read_again (share of the files read, 0 to 1;
--         null without one), asked_again, corrections, re_proposals (by prompt), shown_tokens (null: unknown);
--         read_again and asked_again are null where fewer sessions than $sessions_back came before;
--         one row per session with a prompt
with
spoken as (
    select
        project_id,
        session_id,
        kind,
        said_at,
        text,
        kind = 'tool_call' and list_contains($edit_tools, tool_name) as is_edit,
        kind = 'tool_call' and list_contains($read_tools, tool_name) as is_read,
        epoch(said_at - lag(said_at, 1, said_at) over (
            partition by project_id, session_id
            order by said_at, line, block
        )) / 60 as paused
    from turns
    where agent_id is null and said_at is not null
),
sessions as (
    select
        project_id,
        session_id,
        min(said_at) as began_at,
        max(said_at) as ended_at,
        min(said_at) filter (where kind in ('prompt', 'command')) as asked_at,
        min(said_at) filter (where is_edit) as edited_at,
        row_number() over (partition by project_id order by min(said_at), session_id) as number
    from spoken
    group by project_id, session_id
),
first_briefs as (
    select
        sessions.project_id,
        min(handed.shown_at) as briefed_at
    from handed
    inner join sessions using (session_id)
    group by sessions.project_id
),
-- A pause is no work: somebody who comes back from lunch has not searched for an hour.
starts as (
    select
        project_id,
        session_id,
        sum(least(paused, $pause_minutes)) as minutes_to_edit,
        -- Neither what a tool gave back nor what was only thought is a turn that anybody waits for.
        count(*) filter (
            where said_at < edited_at and kind not in ('tool_result', 'thinking', 'summary', 'recap')
        ) as turns_to_edit
    from spoken
    inner join sessions using (project_id, session_id)
    where said_at <= edited_at
    group by project_id, session_id
),
files as (
    select distinct
        project_id,
        session_id,
        number,
        text as file
    from spoken
    inner join sessions using (project_id, session_id)
    where is_read
),
reads as (
    select
        files.project_id,
        files.session_id,
        count(distinct files.file) filter (where earlier.file is not null) / count(distinct files.file) as read_again
    from files
    left join files as earlier
        on files.project_id = earlier.project_id
        and files.file = earlier.file
        and earlier.number between files.number - $sessions_back and files.number - 1
    group by files.project_id, files.session_id
)
select
    sessions.project_id,
    sessions.session_id,
    sessions.began_at,
    case
        when first_briefs.briefed_at is null or sessions.ended_at < first_briefs.briefed_at then 'before'
        when sessions.asked_at < first_briefs.briefed_at then 'across'
        when handed.session_id is null then 'without'
        else 'with'
    end as side,
    starts.minutes_to_edit,
    starts.turns_to_edit,
    case when sessions.number > $sessions_back then reads.read_again end as read_again,
    case when sessions.number > $sessions_back then coalesce(asked.asked_again, 0) / counts.prompts end as asked_again,
    counts.corrections / counts.prompts as corrections,
    counts.re_proposals / counts.prompts as re_proposals,
    handed.tokens as shown_tokens
from sessions
inner join counts
    on sessions.project_id = counts.project_id and sessions.session_id = counts.session_id and counts.prompts > 0
left join first_briefs
    on sessions.project_id = first_briefs.project_id
left join handed
    on sessions.session_id = handed.session_id
left join starts
    on sessions.project_id = starts.project_id and sessions.session_id = starts.session_id
left join reads
    on sessions.project_id = reads.project_id and sessions.session_id = reads.session_id
left join asked
    on sessions.project_id = asked.project_id and sessions.session_id = asked.session_id
order by
    sessions.project_id,
    sessions.session_id
