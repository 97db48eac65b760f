/** Authors of recorded actions, with their present names. */
import { z } from 'zod';
import type { Scope } from '../../core/foundation/scope.ts';
import type { Database } from '../../storage/foundation/stores.ts';
import { UserModel } from '../../storage/models/foundation/user.ts';

export const ActorAnswer = z
  .object({
    type: z
      .enum(['user', 'service_account', 'system'])
      .meta({ description: 'Kind of the actor; `system` for the service itself, such as jobs of the clock.' }),
    id: z.string().meta({ description: 'Id of the user or service account; the name of the part for `system`.' }),
    name: z.string().nullable().meta({ description: 'Present name of the user; null if it has none.' }),
    email: z.string().nullable().meta({ description: 'Present email address of the user; null if it has none.' }),
  })
  .meta({ id: 'AuditLogActor' });
export type ActorAnswer = z.output<typeof ActorAnswer>;

/** Loads authors by id. `system_id` is the author of actions of the service itself; ids of no user of the tenant are absent. */
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
