-- What came of the decisions of one project: reverted, complained about, contradicted, or held while work went on.
-- reads   decisions (memory_id, session_id or null, said_at, decided_at, is_active, files; a row per place it was said),
--         events (event_id, session_id, event_type, said_at, text, files, git_commit; of a fault its words),
--         about (memory_id, event_id: a commit or fault on what the decision says),
--         reverts (commit_id, reverted_id, said_at; as git has them),
--         rivals (memory_id, other_id, said_at, text)
-- params  $text_chars (characters of a text)
-- writes  memory_id, kind, happened_at (UTC instant), what (commit, event or memory), session_id (or null), days (count),
--         text, is_settled; one row per memory, kind and what
with
memory as (
    select distinct
        memory_id,
        decided_at,
        is_active
    from decisions
),
commits as (
    select
        event_id,
        session_id,
        said_at,
        git_commit,
        regexp_extract(text, '^Committed \S+ on [^:]+: (.*)$', 1, 's') as message
    from events
    where git_commit is not null
),
last_commit as (
    select arg_max(commits, (said_at, event_id)) as latest
    from commits
),
edits as (
    select
        event_id,
        session_id,
        said_at,
        text,
        unnest(files) as file
    from events
    where event_type = 'FILE_MODIFIED'
),
reverting as (
    -- As git has them; a revert that was reverted itself is none.
    select
        null as event_id,
        null as session_id,
        commit_id,
        reverted_id,
        null as subject,
        said_at,
        null as text
    from reverts
    union all
    select
        event_id,
        session_id,
        git_commit,
        nullif(regexp_extract(message, 'reverts commit ([0-9a-f]{7,40})', 1, 'i'), ''),
        nullif(regexp_extract(message, '^Revert ["“](.+?)["”](?:\.|$)', 1), ''),
        said_at,
        message
    from commits
    where regexp_matches(message, 'reverts commit [0-9a-f]{7,40}|^Revert ["“]', 'i')
    union all
    -- A call that ran; of HEAD it is the commit that the session made last.
    select
        event_id,
        session_id,
        null,
        coalesce(nullif(named, 'HEAD'), (
            select max_by(commits.git_commit, (commits.said_at, commits.event_id))
            from commits
            where commits.session_id = calls.session_id and commits.said_at < calls.said_at
        )),
        null,
        said_at,
        text
    from (
        select
            event_id,
            session_id,
            said_at,
            text,
            regexp_extract(
                text, '(?:^Ran `(?:cd \S+ )?|&& |; )git (?:-C \S+ )?revert (?:-?-no-edit )?(HEAD|[0-9a-f]{7,40})(?: -?-no-edit)?(?:`| *&&| *;|$)', 1
            ) as named
        from events
        where event_type = 'COMMAND_RUN'
    ) as calls
    where named <> ''
),
reverted as (
    select
        commits.event_id,
        commits.session_id as made_in,
        reverting.session_id,
        reverting.said_at,
        coalesce(reverting.commit_id, reverting.event_id) as what,
        coalesce(reverting.text, 'Revert of ' || commits.message) as text,
        -- Brought back: under the same message, or by a revert of the revert.
        exists (
            select 1
            from commits as again
            where again.said_at > reverting.said_at and again.message = commits.message
        )
        or exists (
            select 1
            from reverting as back
            where back.said_at > reverting.said_at and starts_with(reverting.commit_id, back.reverted_id)
        ) as is_back
    from reverting
    inner join commits
        on commits.said_at < reverting.said_at
        and (
            starts_with(reverting.reverted_id, commits.git_commit)
            or starts_with(commits.git_commit, reverting.reverted_id)
            or commits.message = reverting.subject
            or starts_with(commits.message, reverting.subject || '. ')
        )
),
failures as (
    -- What git and a session say of one revert is one: git's comes first.
    select
        decisions.memory_id,
        'reverted' as kind,
        reverted.said_at,
        reverted.what,
        reverted.session_id,
        reverted.text,
        reverted.is_back or memory.decided_at > reverted.said_at as is_settled
    from decisions
    inner join memory using (memory_id)
    inner join about using (memory_id)
    inner join reverted
        on about.event_id = reverted.event_id
        and decisions.session_id = reverted.made_in
        and decisions.said_at < reverted.said_at
    qualify row_number() over (
        partition by decisions.memory_id, about.event_id
        order by (reverted.session_id is null) desc, reverted.said_at desc, reverted.what
    ) = 1
    union all
    select
        memory.memory_id,
        'complained',
        faults.said_at,
        faults.event_id,
        faults.session_id,
        faults.text,
        memory.decided_at > faults.said_at
        or exists (
            select 1
            from last_commit
            where latest.said_at > faults.said_at and latest.session_id <> faults.session_id
        )
        or exists (
            select 1
            from decisions
            inner join edits
                on edits.said_at > faults.said_at
                and edits.session_id <> faults.session_id
            where decisions.memory_id = memory.memory_id
                and list_bool_or(list_transform(decisions.files, lambda named: ends_with(edits.file, named)))
        )
    from memory
    inner join about using (memory_id)
    inner join events as faults
        on about.event_id = faults.event_id and faults.event_type = 'SESSION_OUTCOME'
    union all
    select
        memory.memory_id,
        'contradicted',
        rivals.said_at,
        rivals.other_id,
        null,
        rivals.text,
        not memory.is_active
    from memory
    inner join rivals using (memory_id)
),
touched as (
    select
        memory_id,
        unnest(files) as file
    from decisions
    union
    select
        decisions.memory_id,
        edits.file
    from decisions
    inner join edits
        on decisions.session_id = edits.session_id and edits.said_at >= decisions.said_at
),
work as (
    -- Of another session on a later day: a change of a file of the decision says more than the last commit.
    select
        memory.memory_id,
        memory.decided_at,
        true as is_on_its_files,
        edits.said_at,
        edits.event_id as what,
        edits.session_id,
        edits.text
    from memory
    inner join touched using (memory_id)
    inner join edits
        on regexp_extract(edits.file, '[^/\\]*$') = regexp_extract(touched.file, '[^/\\]*$')
        and (edits.file = touched.file or ends_with(edits.file, '/' || touched.file))
    union all
    select
        memory.memory_id,
        memory.decided_at,
        false,
        latest.said_at,
        latest.git_commit,
        latest.session_id,
        latest.message
    from memory
    cross join last_commit
    where latest is not null
),
held as (
    select
        work.memory_id,
        'held' as kind,
        max_by(work.said_at, (work.is_on_its_files, work.said_at, work.what)) as said_at,
        max_by(work.what, (work.is_on_its_files, work.said_at, work.what)) as what,
        max_by(work.session_id, (work.is_on_its_files, work.said_at, work.what)) as session_id,
        max_by(work.text, (work.is_on_its_files, work.said_at, work.what)) as text,
        true as is_settled
    from work
    inner join memory using (memory_id)
    where memory.is_active
        and work.said_at::date > work.decided_at::date
        and not exists (
            select 1
            from decisions
            where decisions.memory_id = work.memory_id and decisions.session_id = work.session_id
        )
        and not exists (
            select 1
            from failures
            where failures.memory_id = work.memory_id and not failures.is_settled
        )
    group by work.memory_id
),
outcomes as (
    select * from failures
    union all
    select * from held
)
select
    outcomes.memory_id,
    outcomes.kind,
    outcomes.said_at as happened_at,
    outcomes.what,
    outcomes.session_id,
    -- From when it was said last before: a word of later settles it.
    date_diff('day', coalesce(
        (
            select max(decisions.said_at)
            from decisions
            where decisions.memory_id = outcomes.memory_id and decisions.said_at <= outcomes.said_at
        ),
        memory.decided_at
    ), outcomes.said_at) as days,
    left(outcomes.text, $text_chars) as text,
    outcomes.is_settled
from outcomes
inner join memory using (memory_id)
order by
    outcomes.memory_id,
    happened_at,
    outcomes.kind,
    outcomes.what
