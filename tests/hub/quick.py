"""Hubs over a few rows, where compiling a query to Java takes longer than running it."""


def quickly(hub):
    for setting, value in {
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.shuffle.partitions": "1",
    }.items():
        hub._store.spark.conf.set(setting, value)
    return hub
