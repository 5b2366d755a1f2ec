"""The path-vector example, small: tables are right after every change, and the picture is one."""

import xml.etree.ElementTree as ET
from itertools import pairwise

from examples.path_vector import Network, picture, run


def test_routing_tables_come_to_what_a_centralised_evaluation_gives():
    network = Network(sites=7, chords=2, hops=4, seed=3)
    lines = list(run(network, changes=6))
    assert len(lines) == 8
    assert len(network.up) < len(network.links), "some link is down in the end"
    name = network.names[0]
    for destination, vector, hops in network.routes(name):
        visited = vector.split()
        assert (visited[0], visited[-1], len(visited)) == (name, destination, hops + 1)
        assert all(tuple(sorted(pair)) in network.up for pair in pairwise(visited))
    drawn = ET.fromstring(picture(network, name))
    shapes = [shape.get("class") for shape in drawn.iter() if shape.tag.endswith("line")]
    assert len(shapes) == len(network.links)
    assert shapes.count("down") == len(network.links) - len(network.up)
    assert "route" in shapes
    network.close()
