-- What each memory says at a prompt, as one value that changes with it.
-- reads   memories (memory_id, memory_type, text, reason, rejected, files, tags, trust, category, updated_at, evidence)
-- params  none
-- writes  memory_id, state (text); one row per memory
select
    memory_id,
    md5(to_json({
        memory_type: memory_type,
        text: text,
        reason: reason,
        rejected: rejected,
        files: files,
        tags: tags,
        trust: trust,
        category: category,
        updated_at: updated_at,
        evidence: evidence
    })::varchar) as state
from memories
order by memory_id
