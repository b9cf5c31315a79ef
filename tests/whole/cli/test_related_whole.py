"""`cortex related` walks the links of a memory."""


def test_what_is_linked_is_listed_by_distance_with_its_relation(cortex, samples):
    listed = cortex("list", "--project", "tidepool", "--json").json["memories"]
    answers = [cortex("related", row["memory_id"], "--json").json for row in listed]
    linked = next(answer for answer in answers if answer["related"])
    distances = [each["distance"] for each in linked["related"]]
    assert distances == sorted(distances) and set(distances) <= {1, 2}
    assert all(0 <= each["strength"] <= 1 and each["text"] for each in linked["related"])
    out = cortex("related", linked["memory"]["memory_id"][:12], "--steps", "1").out
    assert "1 link away:" in out and "2 links away:" not in out
