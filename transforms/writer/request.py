"""One request to a language model and its reply: values, so that the same request is never paid twice."""

from dataclasses import dataclass

from cortex.transforms.identity import content_id


@dataclass(frozen=True)
class ModelRequest:
    """
    What a language model is asked, whoever answers.

    `purpose` says what for (`session`, `links`, …); `prompt` is the prompt file and its version
    (`session@1`); `schema` is the JSON schema of the answer as canonical JSON text. `max_output_tokens`
    bounds what the answer may cost.
    """

    purpose: str
    model: str
    prompt: str
    system: str
    content: str
    schema: str
    max_output_tokens: int

    @property
    def request_id(self) -> str:
        """The hash of everything that is sent: replies are kept, replayed and paid for under it."""
        return content_id(
            "model request",
            self.purpose,
            self.model,
            self.prompt,
            self.system,
            self.content,
            self.schema,
            str(self.max_output_tokens),
        )


@dataclass(frozen=True)
class Reply:
    """
    What came back: the answer as JSON text, why it ended, what it used.

    Tokens are those the provider counted; `usd` is their price. `provider` is `api`, `claude` or `recorded`;
    `requests` is how many were sent for it, where the provider asks again by itself.
    """

    request_id: str
    provider: str
    model: str
    text: str
    stop_reason: str
    input_tokens: int
    output_tokens: int
    usd: float
    provider_request_id: str | None = None
    requests: int = 1
