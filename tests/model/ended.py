"""Views of stores that are over: of a write that only a view has heard of, nobody has the row any more.

A store that is put back from a backup, or given up, may have told its last commits to nobody but a view. Then
no relation has them, and the view would show them for ever. So of incarnations that are *over* a view keeps
no more than there is. It is *settled* when somebody who holds its relations has as much of all of them as it
has itself, or a view that is settled has. If it has more, it joins anew. It does so as a new incarnation:
others know that the old one had all that.
"""

from tests.model.views import VIEWS

TAKE, REFUSE, RENEW = "take", "refuse", "renew"


class Ended:
    """The part of a site that knows what of its views is settled."""

    def start_ended(self):
        self.settled = set()  # received views that have of those who are over no more than there is

    def end_of(self, inc):
        """An incarnation is over. It may be the one that had what was found to be there: look again."""
        if inc not in self.expired_at:
            self.expired_at[inc] = self.steps
            if "settled for good" not in self.shortcuts:
                self.settled.clear()

    def weigh(self, view, page):
        """Whether a cut may be taken of a view; or the sender may have too much of it, or this site has."""
        if "ended stay" in self.shortcuts or (view not in self.joined and page.froms[view] == 0):
            return TAKE
        pairs = [
            (mine[inc], theirs[inc]) for mine, theirs in self._both(view, page) for inc in self.expired_at
        ]
        if self.is_evident(view, page):
            has_more = any(mine > theirs for mine, theirs in pairs)
            return RENEW if has_more and view not in self.settled else TAKE
        brings_more = any(mine < theirs for mine, theirs in pairs)
        return REFUSE if brings_more and "anybody feeds" not in self.shortcuts else TAKE

    def is_evident(self, view, page):
        """Whether a sender has of those who are over what there is: it holds the relations, or is settled.

        To have nothing of them is not to be settled: that says nothing of what others have, and views would
        join anew from each other in turn, for whoever does is over.
        """
        if all((page.sender, (view, relation)) not in page.known for relation in VIEWS[view].inputs):
            return True
        ended = {inc for _, theirs in self._both(view, page) for inc in self.expired_at if theirs[inc]}
        return ended <= page.ended and view in page.settled

    def _both(self, view, page):
        for relation in VIEWS[view].inputs:
            told = page.known.get((page.sender, (view, relation))) or page.known[page.sender, relation]
            yield self.own((view, relation))[0], told[0]
