"""Holds the parts of packaging/kubernetes/pawl.yaml against each other: a cluster would only do so when it is applied.

manifest.py MANIFEST PROBES TOML
PROBES is what docs/observe.md shows of them; the manifest's configuration is written to TOML.
"""

import sys
import tomllib

import yaml


def fail(text):
    sys.exit(f"{sys.argv[1]}: {text}")


def require(what, expected, found):
    if expected != found:
        fail(f"{what}: expected {expected!r}, found {found!r}")


def seconds(text):
    require("the unit of a duration", "s", text[-1])
    return int(text[:-1])


with open(sys.argv[1], encoding="utf-8") as file:
    text = file.read()
documents = {}
for document in yaml.safe_load_all(text):
    key = (document["kind"], document["metadata"]["name"])
    if key in documents:
        fail(f"{key} stands there twice")
    documents[key] = document


def only(kind):
    found = [document for (of, _), document in documents.items() if of == kind]
    require(f"number of {kind}s", 1, len(found))
    return found[0]


stateful = only("StatefulSet")["spec"]
labels = stateful["template"]["metadata"]["labels"]
pod = stateful["template"]["spec"]
require("number of containers", 1, len(pod["containers"]))
container = pod["containers"][0]
ports = {port["name"]: port["containerPort"] for port in container["ports"]}


def number(port):
    """A port by its number, or by its name in the container."""
    if isinstance(port, str) and port not in ports:
        fail(f"the container has no port named {port}")
    return ports.get(port, port)


# What is named is there, or the file says how to make it.
def named(kind, name, keys=()):
    if kind == "Secret":
        made = next((line for line in text.splitlines() if f"kubectl create secret generic {name} " in line), "")
        for key in keys:
            if f"--from-file={key}" not in made and f"--from-literal={key}=" not in made:
                fail(f"nothing says how to make the key {key} of the Secret {name}")
        return
    if (kind, name) not in documents:
        fail(f"there is no {kind} {name}")
    for key in keys:
        if key not in documents[kind, name]["data"]:
            fail(f"the {kind} {name} has no {key}")


named("Service", stateful["serviceName"])
for variable in container["env"]:
    source = variable.get("valueFrom", {})
    for field, kind in (("secretKeyRef", "Secret"), ("configMapKeyRef", "ConfigMap")):
        if field in source:
            named(kind, source[field]["name"], [source[field]["key"]])
config = None
mounted = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
for volume in pod["volumes"]:
    if volume["name"] not in mounted:
        fail(f"the volume {volume['name']} is not mounted")
    if "secret" in volume:
        named("Secret", volume["secret"]["secretName"])
    if "configMap" in volume:
        named("ConfigMap", volume["configMap"]["name"])
        for key, value in documents["ConfigMap", volume["configMap"]["name"]]["data"].items():
            if f"{mounted[volume['name']]}/{key}" in container["args"]:
                config = value
if config is None:
    fail(f"no ConfigMap holds the configuration that {container['args']} names")

# What selects pods selects these.
for what, selector in (
    ("the StatefulSet", stateful["selector"]["matchLabels"]),
    ("the Service", only("Service")["spec"]["selector"]),
    ("the PodDisruptionBudget", only("PodDisruptionBudget")["spec"]["selector"]["matchLabels"]),
    ("the NetworkPolicy", only("NetworkPolicy")["spec"]["podSelector"]["matchLabels"]),
):
    require(f"what {what} selects", labels, selector)
service = only("Service")["spec"]
require("the Service's clusterIP", "None", service["clusterIP"])

# One port, where the program listens.
with open(sys.argv[3], "w", encoding="utf-8") as file:
    file.write(config)
options = tomllib.loads(config)
address, _, port = options.get("monitoring", {}).get("listen", "").rpartition(":")
if address not in ("0.0.0.0", "[::]"):
    fail(f"no probe reaches monitoring.listen, which is on {address or 'nothing'}")
listened = int(port)
require("the container's ports", [listened], list(ports.values()))
require("the Service's ports", [listened], [number(port["targetPort"]) for port in service["ports"]])
let_in = [port for rule in only("NetworkPolicy")["spec"]["ingress"] for port in rule["ports"]]
require("the NetworkPolicy's ports", [listened], [number(port["port"]) for port in let_in])

# Probes: only /live restarts.
with open(sys.argv[2], encoding="utf-8") as file:
    documented = yaml.safe_load(file)
for probe, path in (("livenessProbe", "/live"), ("readinessProbe", "/ready")):
    if probe not in container:
        fail(f"there is no {probe}")
    require(f"the path of the {probe}", path, container[probe]["httpGet"]["path"])
    require(f"the port of the {probe}", listened, number(container[probe]["httpGet"]["port"]))
    require(f"the {probe} in docs/observe.md", container[probe], documented[probe])
if "startupProbe" in container:
    require("the path of the startupProbe", "/live", container["startupProbe"]["httpGet"]["path"])

shutdown = seconds(options.get("consumer", {}).get("shutdown_timeout", "30s"))
if pod["terminationGracePeriodSeconds"] <= shutdown:
    fail(f"the grace period is not above consumer.shutdown_timeout ({shutdown} s)")
