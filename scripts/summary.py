# SPDX-License-Identifier: Apache-2.0
"""What a run of all tests comes to: numbers for each suite, seconds for each phase, and the failures.

A log is often cut to its end, so what matters most is printed last: the failures, and then one line.
"""

import os
import time

FAILURES_SHOWN = 12
LINES_SHOWN = 7  # for each failure


def line(passed, failed, skipped):
    return f'{passed} passed, {failed} failed' + (f', {skipped} skipped' if skipped else '')


class Summary:
    def __init__(self):
        self.suites, self.failures = [], []
        # 'setup 12 build 200': what ran before us (.ci/run)
        words = os.environ.get('CAY_PHASES', '').split()
        self.phases = [(name, float(seconds)) for name, seconds in zip(words[::2], words[1::2])]
        self.since = time.monotonic()

    def add(self, title, passed, failed, skipped=0):
        self.suites.append((title, passed, failed, skipped))
        print(f'{title}: {line(passed, failed, skipped)}', flush=True)

    def fail(self, title, name, text):
        """Tells of a failed test; add() counts it. The end of a text says what went wrong."""
        self.failures.append((title, name, text))

    def phase(self, name):
        """A phase has ended, and the next one begins."""
        now = time.monotonic()
        self.phases.append((name, now - self.since))
        self.since = now

    @property
    def totals(self):
        return [sum(suite[i] for suite in self.suites) for i in (1, 2, 3)]

    def tell(self):
        """All of it; true if something ran and nothing failed."""
        passed, failed, skipped = self.totals
        print('\n--- seconds: ' + ', '.join(f'{name} {seconds:.0f}' for name, seconds in self.phases)
              + f', in all {sum(seconds for _, seconds in self.phases):.0f}')
        for suite in self.suites:
            print(f'{suite[0]}: {line(*suite[1:])}')
        for title, name, text in self.failures[:FAILURES_SHOWN]:
            print(f'FAILED {title}: {name}')
            print(*(f'    {text}' for text in text.strip().splitlines()[-LINES_SHOWN:]), sep='\n')
        for title, name, _ in self.failures[FAILURES_SHOWN:]:
            print(f'FAILED {title}: {name}')
        print(line(passed, failed, skipped), flush=True)
        return passed > 0 and failed == 0
