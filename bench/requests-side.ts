/** A running service of a checkout with its company. */
import type { Checkout } from './checkout.ts';
import { type OutsideService, startOutside } from './outside-service.ts';
import { makeRequestsWorld, type RequestsWorld } from './requests-world.ts';

export type Side = { readonly name: string; readonly service: OutsideService; readonly world: RequestsWorld };

export async function startSide({ root, name }: Checkout): Promise<Side> {
  const service = await startOutside(root);
  try {
    return { name, service, world: await makeRequestsWorld(service) };
  } catch (error) {
    await service.stop();
    throw error;
  }
}
