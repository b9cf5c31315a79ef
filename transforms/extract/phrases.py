"""Turns of phrase that are cut from prose or tell where it stands: filler, pasted lines, assent."""

import re

# "Let me look at the tests:" announces the next step, "Here is the breakdown:" the list that carries it,
# "Now I need to update x" work in hand. None of them is a fact an hour later.
ANNOUNCES = re.compile(
    r"^(?:(?:ok(?:ay)?|good|great|perfect|excellent|now|so|hmm|wait|alright|first|next|then|and|but|also"
    r"|actually)[,.!:—-]*\s+)*"
    r"(?:let me|let's|let us|i'll|i will|i'm going to|i need to|here(?:'s| is| are)|checking|going to"
    r"|running|writing|waiting for)\b"
    r"|^now (?:the|i|we|let|add|update|fix|replace|run|create|check|implement|write|remove|verify|test"
    r"|commit|for|that)\b[^.]{0,90}[.:]?$"
    r"|^i (?:should|want to|have to|can)\b[^.]{0,60}\b(?:check|look|see|read|find|verify|run|understand)\b"
    r"|^(?:would you like|want me to|should i|shall i|do you want|which (?:one )?would you|let me know)\b"
    r"|^(?:sources?|references?):"
    r"|^[^.]{0,60}:$",
    re.IGNORECASE,
)

FILLER = re.compile(
    r"^(?:(?:perfect|excellent|great|good|awesome|nice|wonderful|done|aha|ah|oh|interesting|hmm|ok(?:ay)?"
    r"|right|exactly|absolutely|yes|got it|i see"
    r"|(?:good|great|nice|fair) (?:point|catch|question|call|idea|instinct|news|progress|choice)"
    r"|you'?re (?:absolutely )?right|i see (?:the|it)(?: \w+)?(?: now)?"
    r"|now i (?:see|understand)(?: it| the \w+)?(?: now)?)\s*(?:[!.,:]|[-–—]+)\s*)+",
    re.IGNORECASE,
)
LEAD = re.compile(r"^(?:now|so|actually|and|also|but|then)\s*,\s+", re.IGNORECASE)

GENERIC_HEADING = re.compile(
    r"^(?:summary|changes?(?: made)?|what (?:changed|was done|i did|i changed)|overview|details?|result"
    r"|notes?|done|key (?:changes|points|aspects)|here(?:'s| is| are)\b.*|now i\b.*|the changes are"
    r"|i need to\b.*|i(?:'ve| have)\b.*|let me\b.*|this (?:provides|includes|gives|means|will)|it has)$",
    re.IGNORECASE,
)

# Prompts of a shell, stamped log lines, stack frames, markup, code: shown by the person, not said.
PASTED_LINE = re.compile(
    r"^\s*(?:[➜❯$%]\s|\w+@[\w.-]+[:~]|\[?\d{1,4}[-:/.]\d{2}[-:/.]\d{2}|at .+:\d+|File \"|Traceback|Loading "
    r"|[{}\[\]<\"'(]\S*.*[,{}\[\]>)]$|[\w.]+(?:Error|Exception): |\d+\s*[|│]|[│└├╭╰┌]|\S+\s{3,}\S+\s{3,}"
    r"|\[[\w:-]+\] |\"[\w-]+\":\s"
    r"|(?:async )?(?:def|class|import|from|const|let|var|func|return|assert|export|public|private)\b"
    r".*[:;({\[)'\"]$"
    r"|@[\w.]+(?:\(.*\))?$)"
    r"|^ {2,}[\w.-]+:(?:\s|$)|^ {4,}(?![-*•\d])"
)

# Somebody speaks, or is spoken to: "I", "we", a question, a request, an order at the start.
PERSONAL = re.compile(
    r"\b(?:i|i'[a-z]+|we|we'[a-z]+|me|my|our|us|let'?s|please|thanks?"
    r"|(?:can|could|would|will) you|you (?:can|should|need))\b|\?(?:\s|$)|[가-힣]"
    r"|^[\W\d]*(?:(?:ok(?:ay)?|no|yes|now|so|and|then|also|but)\b[,.]?\s*)*"
    r"(?:add|fix|make|use|keep|remove|change|create|update|rename|move|write|implement|do|don'?t|never|always"
    r"|find|read|search|build|replace|drop|set up|put|run|test|support|refactor|new feature)\b",
    re.IGNORECASE,
)
# What is answered to this is an argument for or against: nothing is settled by it.
OPINION_ASKED = re.compile(
    r"\b(?:opinion|pros and cons|pros\b|weak(?:ness(?:es)?| points?)|strengths?|strong points?|advantages?"
    r"|disadvantages?|drawbacks|argue|devil'?s advocate|arguments? (?:for|against)"
    r"|what do you think (?:of|about))\b",
    re.IGNORECASE,
)

# Takes back what was said just before.
WITHDRAWN = re.compile(
    r"^(?:(?:no|ok(?:ay)?|hmm|sorry|actually|wait)\b[,.!]? *)*(?:please )?(?:(?:can|could) you )?"
    r"(?:never ?mind|scrap (?:that|it|this)|forget (?:that|it|about)"
    r"|(?:let'?s )?(?:revert|undo|roll back|back out|take back)"
    r" (?:that|it|this|these|those|the|all|your|everything))\b|되돌려|롤백",
    re.IGNORECASE,
)
# "do 0.54.0" after "I picked 0.52.0": another value than the assistant chose.
ORDERED_VALUE = re.compile(
    r"^(?:(?:no|ok(?:ay)?|yes|please)\b,? *)*(?:do|use|take|go with|make it|let'?s (?:do|use|take|go with))"
    r" v?(\d[\w.]*?)\W*$",
    re.IGNORECASE,
)
CHOSEN_VALUE = re.compile(
    r"\b(?:picked|chose|go(?:ing)? with|went with|stay(?:ing)? (?:at|on|with)|back to)\b"
    r"[^.]{0,40}?\bv?(\d[\w.]*\w)",
    re.IGNORECASE,
)

COMPLAINT = re.compile(
    r"^(?:oh )?no\b|\b(?:doesn'?t|didn'?t|not|isn'?t) (?:work|load|show|appear|right|correct|fix)"
    r"|\bstill (?:doesn|not|fail|the|see|get|broken)"
    r"|\b(?:we lost|is broken|broke\b|is wrong|wrong\b|gone\b|disappeared|are you sure"
    r"|same (?:error|issue|problem)|fails?\b|failed\b|error:|blocked because)|안 ?돼|안 ?되|오류|에러",
    re.IGNORECASE,
)
ACCEPTANCE = re.compile(
    r"^(?:yes|yep|yeah|ok(?:ay)?|sure|sounds good|go ahead|do (?:it|that)|agreed|perfect|great|please do"
    r"|let'?s|good|네|응|좋)\b",
    re.IGNORECASE,
)

# Commands that check or build a project: how they are called here is worth knowing.
CHECK_COMMANDS = re.compile(
    r"\b(?:pytest|vitest|jest|tox|nox|ruff|mypy|pyright|eslint|tsc|golangci-lint|rspec|phpunit|ctest|act|vite"
    r"|playwright|go (?:test|build|vet|run)|cargo (?:test|build|clippy|check)"
    r"|(?:npm|pnpm|yarn|bun|mise|just|make|task|rake|gradle|mvn|dotnet|uv|poetry)(?: run)?"
    r" (?:test|lint|build|check|dev|typecheck|format|fmt|ci|install)[\w:-]*)\b"
)

REASON = re.compile(
    r"\b(?:because|since|so that|due to|in order to|to avoid)\s+(.{8,200}?)(?:[.;]|$)", re.IGNORECASE
)
REJECTED = re.compile(
    r"\b(?:instead of|rather than|as opposed to)\s+(.{3,120}?)(?:[.,;:)]|\s(?:as|which|that|to|and|so)\s|$)",
    re.IGNORECASE,
)
RENAMED = re.compile(r"\brenam\w*\b[^.]{0,60}?\bfrom [`\"']?([\w./:@-]+)[`\"']? to ", re.IGNORECASE)
TO_NAME = re.compile(r"\brenam\w*\b[^.]{0,40}?\bto [`\"']?([\w.@-]+\w)", re.IGNORECASE)
FILE = re.compile(
    r"(?<![\w/])[\w./@~+-]*[\w-]\.(?:py|tsx?|jsx?|go|rs|json|ya?ml|toml|md|sh|html|css|rb|sql|java|kt|swift"
    r"|cfg|ini|lock)\b"
)
GLOBAL_PREFERENCE = re.compile(
    r"\b(?:(?:always|never) (?=\w)|i (?:really )?prefer|from now on|in general,"
    r"|i (?:hate|dislike|don't like))\b",
    re.IGNORECASE,
)

# Names the places where a wish holds: all of them, or this one.
EVERYWHERE = re.compile(
    r"\b(?:in|for|across|on) (?:every|all|each|any)(?: single| of)?(?: (?:my|our|the|your))?(?: other)?"
    r" (?:repositor(?:y|ies)|repos?|projects?|code ?bases?)\b|\beverywhere\b|모든 (?:프로젝트|저장소)",
    re.IGNORECASE,
)
OF_THIS_PROJECT = re.compile(
    r"\b(?:here|(?:this|the|our) (?:repository|repo|project|code ?base|package|service|library|app))\b",
    re.IGNORECASE,
)

# A question about what is done next, not about how a thing is: its answer is old news once it is done.
NEXT_STEP = re.compile(
    r"\b(?:do (?:first|next|now)|next steps?|proceed|go ahead|start (?:with|now)|continue)\b[^.]*\?",
    re.IGNORECASE,
)
