"""Sends a storm of webhooks by carbon-layer's own functions. Reads it as JSON from the input and writes what was answered.

The command of carbon-layer invents the ids of its payments and waits for five seconds only, so it is not used.
"""

import asyncio
import json
import sys

from carbon.storage.db import get_connection
from carbon.storage.repo import create_run, insert_entity_mappings_bulk
from carbon.webhook import replay_webhooks, send_webhooks


async def send(storm):
    target = {
        "target_url": storm["url"],
        "secret": storm["secret"],
        "provider": storm["provider"],
        "timeout_s": 60.0,
    }
    if storm.get("run_id"):
        return storm["run_id"], await replay_webhooks(storm["run_id"], **target)
    run_id = await create_run("storm", storm["provider"], {})
    connection = await get_connection()
    try:
        await insert_entity_mappings_bulk(connection, run_id, storm["provider"], storm["records"])
    finally:
        await connection.close()
    how = {name: storm[name] for name in ("repeat", "order", "signature_mode") if name in storm}
    return run_id, await send_webhooks(run_id, **target, **how)


run_id, deliveries = asyncio.run(send(json.load(sys.stdin)))
fields = ("event_type", "status_code", "payload")
print(json.dumps({"run_id": run_id, "deliveries": [{name: one[name] for name in fields} for one in deliveries]}))
