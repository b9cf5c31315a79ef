-- How each session went: what was asked for again, read again, put right by the user.
-- reads   turns, events
-- params  $edit_tools, $read_tools (names of tools), $complaint (RE2, case folded),
--         $shown_min_confidence, $metrics_same_words (fractions), $link_max_memories_per_term
-- writes  project_id, session_id, began_at (UTC instant), prompts, edits, minutes_to_first_edit (null without
--         one), re_read_files, corrections, decisions, duplicate_decisions, re_proposals (counts); one row per
--         session
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
        epoch(
            min(said_at) filter (where kind = 'tool_call' and list_contains($edit_tools, tool_name))
            - min(said_at) filter (where kind in ('prompt', 'command'))
        ) / 60 as minutes_to_first_edit
    from spoken
    group by project_id, session_id
),
decisions as (
    select
        event_id,
        project_id,
        session_id,
        event_type,
        text,
        rejected,
        said_at
    from events
    where memory_type = 'decision' and confidence >= $shown_min_confidence and said_at is not null
),
words as (
    select distinct
        event_id,
        project_id,
        session_id,
        said_at,
        unnest(regexp_extract_all(lower(text), '[\pL_][\pL\pN_]{3,}')) as word
    from decisions
),
telling as (
    select
        project_id,
        word
    from words
    group by project_id, word
    having count(*) <= $link_max_memories_per_term
),
kept as (
    select words.*
    from words
    join telling using (project_id, word)
),
counted as (
    select
        event_id,
        count(*) as word_count
    from kept
    group by event_id
),
again as (
    select
        later.session_id,
        later.project_id,
        later.event_id,
        count(*) as shared_count,
        earlier.event_id as earlier_id
    from kept as later
    join kept as earlier
        on
            later.project_id = earlier.project_id
            and later.word = earlier.word
            and later.session_id <> earlier.session_id
            and later.said_at > earlier.said_at
    group by later.session_id, later.project_id, later.event_id, earlier.event_id
),
duplicates as (
    select
        again.project_id,
        again.session_id,
        count(distinct again.event_id) as duplicate_decisions
    from again
    join counted as one on again.event_id = one.event_id
    join counted as other on again.earlier_id = other.event_id
    where shared_count >= $metrics_same_words * (one.word_count + other.word_count - shared_count)
    group by again.project_id, again.session_id
),
proposals as (
    select
        later.project_id,
        later.session_id,
        count(distinct later.event_id) as re_proposals
    from decisions as later
    join decisions as earlier
        on
            later.project_id = earlier.project_id
            and later.session_id <> earlier.session_id
            and later.said_at > earlier.said_at
            and length(earlier.rejected) between 4 and 60
            and contains(lower(later.text), lower(earlier.rejected))
    where
        later.event_type <> 'APPROACH_REJECTED'
        and not contains(lower(coalesce(later.rejected, '')), lower(earlier.rejected))
    group by later.project_id, later.session_id
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
    coalesce(duplicates.duplicate_decisions, 0) as duplicate_decisions,
    coalesce(proposals.re_proposals, 0) as re_proposals
from sessions
left join made using (project_id, session_id)
left join duplicates using (project_id, session_id)
left join proposals using (project_id, session_id)
order by
    sessions.project_id,
    sessions.session_id
