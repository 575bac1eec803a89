import pytest

from windlass.client.spoken import amount, progress_text
from windlass.core.job import Progress


@pytest.mark.parametrize(
    "number, text",
    [
        (0, "0"),
        (0.5, "0.5"),
        (30.0, "30"),
        (0.1 + 0.2, "0.3"),
        (1_234_567.0, "1,234,567"),
        (98_765_432.1, "98,765,432.1"),
    ],
)
def test_an_amount_is_said_as_it_was_counted(number: float, text: str) -> None:
    assert amount(number) == text


@pytest.mark.parametrize(
    "progress, text",
    [
        (Progress(30, 100, "rows"), "30/100 (30%) rows"),
        (Progress(1_234_567, 2_500_000), "1,234,567/2,500,000 (49%)"),
        (Progress(1_234_567, None, "rows"), "1,234,567 rows"),
        (Progress(7, 0), "7"),
        (Progress(12, 10), "12/10 (100%)"),
    ],
)
def test_progress_is_said_with_its_share(progress: Progress, text: str) -> None:
    assert progress_text(progress) == text
