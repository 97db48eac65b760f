/** A running service of a checkout with its company. */
import { Agent } from 'node:http';
import { mapConcurrently } from '../storage/concurrency/batch-loader.ts';
import type { Checkout } from './checkout.ts';
import { send, sendWhenDue } from './due-requests.ts';
import { type OutsideService, startOutside } from './outside-service.ts';
import { mixRequests } from './requests-mix.ts';
import { listCachedRequests, makeRequestsWorld, type RequestsWorld } from './requests-world.ts';

/** Until the code is compiled, connections are open, and pages are cached. */
const WARM_UP = { seconds: 15, rate: 40 };
const AT_A_TIME = 8;

export type Side = { readonly name: string; readonly service: OutsideService; readonly world: RequestsWorld };

export async function startSide({ root, name }: Checkout): Promise<Side> {
  const service = await startOutside(root);
  try {
    const side = { name, service, world: await makeRequestsWorld(service) };
    await warmUp(side);
    return side;
  } catch (error) {
    await service.stop();
    throw error;
  }
}

/** As in a service that has run for some minutes: the first request for the usage of a customer costs several times as much as later ones. */
async function warmUp({ service, world }: Side): Promise<void> {
  const agent = new Agent({ keepAlive: true });
  await mapConcurrently(AT_A_TIME, listCachedRequests(world), (request) => send(service, agent, request));
  agent.destroy();
  await sendWhenDue(service, WARM_UP, mixRequests(world, 1));
}
