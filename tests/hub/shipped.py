"""A world whose gate lies on a machine that is lost now and then, while its store fails now and then."""

import contextlib
import shutil

from tests.hub.gates import CATALOG, PROGRAM, World

from everview.engines.sqlite.reading import Reading
from everview.errors import StoreError, SyncError
from everview.hub.files import LocalFiles
from everview.hub.gate import Gate
from everview.hub.generations import FOLDER, restore
from everview.hub.peering import Peering


class FarFiles(LocalFiles):
    """Files that are not of this machine, as far as they say."""

    def __init__(self, folder, machine, random):
        super().__init__(folder)
        self.machine, self.random, self.faults = machine, random, 0.0

    def near(self):
        return LocalFiles(self.machine)

    def create(self, path, content):
        fails = path.startswith(FOLDER) and self.random.random() < self.faults
        if fails and self.random.random() < 0.5:
            raise StoreError("nothing was stored")
        made = super().create(path, content)
        if fails:
            raise StoreError("it was stored, but who knows")
        return made


class FarWorld(World):
    """What a site was told to be there is in the store: each time a gate is made from that and compared."""

    def files_in(self, folder):
        self.machine = folder.with_name("machine")
        self.scratch = folder.with_name("scratch")
        self.restored = self.failed = 0
        return FarFiles(folder, self.machine, self.random)

    def peering_of(self, record):
        return Peering(self.files, CATALOG, "hub", record, lambda: None)

    def step(self):
        self.files.faults = 0.15
        try:
            super().step()
        except (StoreError, SyncError) as error:
            if "stored" not in str(error):
                raise
            self.failed += 1
            self.files.faults = 0.0
            self.peering.close()
            self.open()
        self.files.faults = 0.0
        if self.random.random() < 0.05:
            self.lose_machine()

    def sync(self, site, *_, **__):
        super().sync(site)
        if self.random.random() < 0.3:
            self.check_store()

    def check_store(self):
        """Nothing was acknowledged that the store does not have."""
        shutil.rmtree(self.scratch, ignore_errors=True)
        path = self.scratch / "gate.db"
        assert restore(self.files, str(path), None)
        again = Gate(str(path), PROGRAM, "hub", self.record.epoch)
        here, there = Reading(self.gate._store), Reading(again._store)
        for name in PROGRAM.relations:
            assert there.sorted_rows(name, inside=False) == here.sorted_rows(name, inside=False), name
        again.close()
        self.restored += 1

    def lose_machine(self):
        shutil.rmtree(self.machine)
        lost = self.peering
        self.open()
        with contextlib.suppress(StoreError):
            lost.close()
