"""The training matrix in one process: `python -m tests.one_process`, with its arguments."""

from tests.one_process import use_one_process

if __name__ == "__main__":
    use_one_process()
    from tests.training_matrix import main

    raise SystemExit(bool(main(one_process=True)))
