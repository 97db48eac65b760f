/**
 * Records that a connection exchanges with its provider, by direction (docs/integrations/README.md, "What is exchanged"). Inbound means
 * from the provider to this service.
 */
import { z } from 'zod';
import { invalid } from '../../foundation/error.ts';
import { allOrNull } from '../../foundation/record.ts';

const DIRECTIONS = ['inbound', 'outbound'] as const;
type Direction = (typeof DIRECTIONS)[number];

const SYNCED_ENTITIES = ['plan', 'subscription', 'invoice', 'customer', 'payment', 'price', 'deal', 'quote'] as const;
type SyncedEntity = (typeof SYNCED_ENTITIES)[number];

const entitySyncConfig = z
  .object({
    inbound: z.boolean().meta({ description: 'Whether changes at the provider are read.' }),
    outbound: z.boolean().meta({ description: 'Whether records are sent to the provider.' }),
  })
  .meta({
    id: 'EntitySyncConfig',
    description: 'Directions in which records of one kind are exchanged; null if they are not exchanged.',
  });

const entityShapes = Object.fromEntries(SYNCED_ENTITIES.map((entity) => [entity, entitySyncConfig])) as Record<
  SyncedEntity,
  typeof entitySyncConfig
>;

export const syncConfigShape = z.object(allOrNull(entityShapes)).meta({ id: 'SyncConfig' });
export type SyncConfig = z.output<typeof syncConfigShape>;

/** Throws if the configuration switches on a kind of record in a direction in which the provider does not exchange it. */
export function checkSyncConfig(config: SyncConfig, supported: SyncConfig, provider_type: string): void {
  for (const entity of SYNCED_ENTITIES)
    for (const direction of DIRECTIONS)
      if (config[entity]?.[direction] && !supported[entity]?.[direction])
        throw invalid(`sync_config.${entity}.${direction}`, `${provider_type} does not support it`);
}

/** A kind that the configuration does not name is not exchanged. */
export function isSynced(
  config: SyncConfig | null,
  { entity, direction }: { entity: SyncedEntity; direction: Direction },
): boolean {
  return config === null || config[entity]?.[direction] === true;
}

/** Whether money and payment methods are read from the provider. `sync_config` has no entry for payment methods. */
export function isMoneyRead(config: SyncConfig | null): boolean {
  const inbound = { direction: 'inbound' } as const;
  return isSynced(config, { ...inbound, entity: 'invoice' }) || isSynced(config, { ...inbound, entity: 'payment' });
}
