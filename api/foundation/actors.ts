/** Authors of recorded changes, with their current names and email addresses. */
import { z } from 'zod';
import type { Scope } from '../../core/foundation/scope.ts';
import type { Database } from '../../storage/foundation/stores.ts';
import { UserModel } from '../../storage/models/foundation/user.ts';

export const ActorAnswer = z
  .object({
    type: z
      .enum(['user', 'service_account', 'system'])
      .meta({ description: 'Kind of the actor; `system` for the service itself, such as scheduled jobs.' }),
    id: z.string().meta({
      description:
        'Id of the user or service account. Of `system`: `system`, or `pipeline` for events that the stores rejected.',
    }),
    name: z.string().nullable().meta({ description: 'Current name of the user; null if it has none.' }),
    email: z.string().nullable().meta({ description: 'Current email address of the user; null if it has none.' }),
  })
  .meta({ id: 'Actor' });
export type ActorAnswer = z.output<typeof ActorAnswer>;

/** Loads authors by id. `system_id` is the id of the service itself. An id that is no user of the tenant is absent. */
export async function loadActors(
  ids: readonly string[],
  { scope, system_id, database }: { scope: Scope; system_id: string; database: Database },
): Promise<Map<string, ActorAnswer>> {
  const users = await UserModel.byId(
    scope.tenant_id,
    ids.filter((id) => id !== system_id),
    database,
  );
  const actors = Array.from(users.values(), ({ type, id, name, email }): [string, ActorAnswer] => [
    id,
    { type, id, name: name || null, email: email || null },
  ]);
  return new Map([...actors, [system_id, { type: 'system', id: system_id, name: null, email: null }]]);
}
