/** A running service of a checkout with its company. */
import type { Checkout } from './checkout.ts';
import { sendWhenDue } from './due-requests.ts';
import { type OutsideService, startOutside } from './outside-service.ts';
import { mixRequests } from './requests-mix.ts';
import { makeRequestsWorld, type RequestsWorld } from './requests-world.ts';

/** Until the code is compiled, connections are open, and pages and the usage of customers are cached. */
const WARM_UP = { seconds: 20, rate: 40 };

export type Side = { readonly name: string; readonly service: OutsideService; readonly world: RequestsWorld };

export async function startSide({ root, name }: Checkout): Promise<Side> {
  const service = await startOutside(root);
  try {
    const side = { name, service, world: await makeRequestsWorld(service) };
    await sendWhenDue(service, WARM_UP, mixRequests(side.world, 1));
    return side;
  } catch (error) {
    await service.stop();
    throw error;
  }
}
