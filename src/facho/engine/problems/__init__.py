"""Problems of the network and their probable causes, found in plain values: no clock, no I/O.

| file | subject |
|---|---|
| `model` | the values: what is known of OLTs, ports and ONUs, and the problems found in it |
| `outages` | ports, cards and OLTs whose ONUs went down together; power cuts |
| `optics` | low power, and sudden drops of power |
| `flapping` | ONUs that go down again and again |
| `branches` | where on a port: distances, and the ONUs that are concerned against the others |
| `lasting` | the cause of a problem that shrinks |
| `olts` | OLTs that do not answer or are in doubt, violated quotas, late jobs |
"""
