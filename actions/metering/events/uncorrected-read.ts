/** Reads the usage of an event that nobody corrects meanwhile. Several reads make up the answer, and all must have the same content. */
import { FarthingError } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import { type Correction, listCorrections } from '../../../storage/progress/corrections.ts';

type ReadSubject = {
  readonly event_id: string;
  /** Corrections of the event before the read. */
  readonly corrections: readonly Pick<Correction, 'id' | 'state'>[];
};

/** Refuses the answer if a correction was requested or took effect since. A read may also fail because usage has lost the event. */
export async function readUncorrected<Result>(
  { postgres }: Pick<Stores, 'postgres'>,
  scope: Scope,
  { event_id, corrections }: ReadSubject,
  read: () => Promise<Result>,
): Promise<Result> {
  const listStates = (known: ReadSubject['corrections']) => known.map(({ id, state }) => `${id} ${state}`).join();
  const states = listStates(corrections);
  const result = await read().catch(async (error: unknown) => {
    const known = await listCorrections(postgres, scope, event_id);
    // A correction that is being applied is stored before usage has its effect.
    if (listStates(known) !== states || known.some(({ state }) => state === 'requested'))
      throw toProcessingError(event_id);
    throw error;
  });
  if (listStates(await listCorrections(postgres, scope, event_id)) !== states) throw toProcessingError(event_id);
  return result;
}

export function toProcessingError(event_id: string): FarthingError {
  return new FarthingError('service_unavailable', `event ${event_id} is still being processed: try again`);
}
