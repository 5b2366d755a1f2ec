"""Random programs and histories on a device: every view is its query after every statement."""

from everview.testing.fuzz import check_case, failure, generate_case, minimise, write_case


def case(seed):
    found = generate_case(seed)
    try:
        check_case(found)
    except Exception as error:
        small = minimise(found)
        raise AssertionError(f"{error}\n\n{write_case(small, title=failure(small) or '')}") from error
