from windlass.demo.app import painted, shrunk


def test_a_shrunk_picture_has_the_mean_of_each_square() -> None:
    picture = [[0, 10, 100, 100], [20, 30, 100, 200]]

    assert shrunk(picture, by=2) == [[15, 125]]


def test_the_same_seed_paints_the_same_picture_in_grey() -> None:
    picture = painted(seed=1, width=12, height=7)

    assert picture == painted(seed=1, width=12, height=7)
    assert picture != painted(seed=2, width=12, height=7)
    assert [len(picture), {len(row) for row in picture}] == [7, {12}]
    assert all(0 <= point <= 255 for row in picture for point in row)
