"""The private server answers, and is gone afterwards."""

import psycopg2
import pytest

from tests.testbed.postgres import postgres, server_programs

pytestmark = [
    pytest.mark.postgres,
    pytest.mark.skipif(server_programs() is None, reason="no PostgreSQL server programs installed"),
]


def test_starts_answers_and_leaves_nothing() -> None:
    with postgres() as url, psycopg2.connect(url.replace("+psycopg2", "")) as connection:
        cursor = connection.cursor()
        cursor.execute("select 1")
        assert cursor.fetchone() == (1,)
        connection.rollback()
    with pytest.raises(psycopg2.OperationalError):
        psycopg2.connect(url.replace("+psycopg2", ""))
