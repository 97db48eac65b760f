/**
 * Copies one root with its references and parts, all or none (docs/rules/records.md, "Copying an
 * environment"). Stored pairs of ids identify earlier copies, which are not copied again.
 */
import { FarthingError, notAllowed } from '../../../core/foundation/error.ts';
import type { IdKind } from '../../../core/foundation/id.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { type Author, createdBy } from '../../../core/foundation/stamp.ts';
import { newId } from '../../../storage/foundation/new-id.ts';
import type { Transaction } from '../../../storage/foundation/stores.ts';
import { EnvironmentCopyModel } from '../../../storage/models/operations/environment-copy.ts';
import { COPIED, type CopiedNoun, type Copyable } from './copied.ts';

type CopyContext = {
  readonly database: Transaction;
  readonly source: Scope;
  readonly target: Scope;
  readonly author: Author;
  /** Current time of the source environment's clock. */
  readonly source_now: Date;
  readonly workflow_id: string;
  /** Existing target records that replace the copies of records whose key was taken. */
  readonly stand_ins: Map<string, string>;
};

/** Result for one root, which is no part of another record. `reason` is why it was not copied. */
export type RootOutcome =
  | { readonly kind: 'copied' | 'copied before'; readonly left_out: readonly SkippedRecord[] }
  | { readonly kind: 'skipped'; readonly reason: string };

export type SkippedRecord = {
  readonly entity: string;
  readonly id: string;
  readonly name: string;
  readonly reason: string;
};

export async function copyRoot(copying: CopyContext, entity: string, record: Copyable): Promise<RootOutcome> {
  const noun = getNoun(entity);
  const known = await findCopyPair(copying, entity, record.id);
  const reason = known
    ? await findArchivedCopy(noun, known.target_id, copying)
    : await findKeyConflict(copying, { noun, entity, record });
  if (reason) return { kind: 'skipped', reason };
  if (!known) await copyRecord(copying, entity, record);
  const left_out: SkippedRecord[] = [];
  for (const part of noun.parts ?? [])
    left_out.push(...(await copyParts(copying, part, { id: record.id, known: !!known })));
  return { kind: known && known.workflow_id !== copying.workflow_id ? 'copied before' : 'copied', left_out };
}

/**
 * Copies the parts of a root that have no copy yet. If an earlier run copied the root, parts that may replace an already copied part are
 * skipped.
 */
async function copyParts(
  copying: CopyContext,
  part: NonNullable<CopiedNoun['parts']>[number],
  root: { id: string; known: boolean },
): Promise<SkippedRecord[]> {
  const { source, author, database } = copying;
  const fresh: Copyable[] = [];
  const left_out: SkippedRecord[] = [];
  for (const each of await part.of(source, root.id, { now: author.now, database })) {
    if (await findCopyPair(copying, part.noun, each.id)) continue;
    const reason = root.known ? await findObstacle(copying, part.noun, each) : undefined;
    if (reason) left_out.push({ entity: part.noun, id: each.id, name: each.name ?? '', reason });
    else fresh.push(each);
  }
  for (const each of fresh) await copyRecord(copying, part.noun, each);
  return left_out;
}

/** Returns why a part is not copied: an older part that it may replace was copied before, or the target has its own record. */
async function findObstacle(copying: CopyContext, entity: string, record: Copyable): Promise<string | undefined> {
  const { source, target, database } = copying;
  const noun = getNoun(entity);
  for (const { id } of (await noun.before?.(source, record, database)) ?? []) {
    const pair = await findCopyPair(copying, entity, id);
    if (pair) return `${id}, in whose place it may stand, was copied before: ${pair.target_id}`;
  }
  const keyed = await noun.byKey?.(target, record, database);
  if (keyed) return formatKeyConflict(noun, { record, there: keyed });
  if (!noun.rival) return undefined;
  const rival = await noun.rival(target, await findCounterparts(copying, entity, record), database);
  return rival && `${rival.id} is there already`;
}

/** Reports a copy that was archived; new parts of the source are not added to it. */
async function findArchivedCopy(
  noun: CopiedNoun,
  id: string,
  { target, database }: CopyContext,
): Promise<string | undefined> {
  const { status } = await noun.fetch(target, id, { database });
  return status === 'published' ? undefined : `its copy ${id} is ${status}`;
}

/**
 * Returns why a record is not copied because its key is taken. References then point to the target's record, if it is
 * equivalent.
 */
async function findKeyConflict(
  copying: CopyContext,
  { noun, entity, record }: { noun: CopiedNoun; entity: string; record: Copyable },
): Promise<string | undefined> {
  const there = await noun.byKey?.(copying.target, record, copying.database);
  if (!there) return undefined;
  if (noun.isSame?.(record, there)) copying.stand_ins.set(formatRecordKey(entity, record.id), there.id);
  return formatKeyConflict(noun, { record, there });
}

function formatKeyConflict(
  { key = 'lookup_key' }: CopiedNoun,
  { record, there }: { record: Copyable; there: Copyable },
): string {
  return `${there.id} has the ${key} ${String((record as unknown as Record<string, unknown>)[key])} there already`;
}

async function copyRecord(copying: CopyContext, entity: string, record: Copyable): Promise<string> {
  const { database, source, source_now, target, author, workflow_id } = copying;
  const noun = getNoun(entity);
  const fields = {
    ...record,
    ...noun.fresh,
    ...(await findCopiedLineage(copying, entity, record)),
    ...(await findCounterparts(copying, entity, record)),
    // Each entity name is also a kind of id.
    id: newId(entity as IdKind, author.now.getTime()),
    ...createdBy(author),
  };
  const { id: target_id } = await noun.add(target, fields, { author, database, source_now });
  const pair = { source_environment_id: source.environment_id, entity, source_id: record.id, target_id };
  try {
    await EnvironmentCopyModel.add(target, { ...pair, workflow_id, created_at: fields.created_at }, { database });
  } catch (error) {
    // A concurrent run copied the record first: the next attempt finds that copy.
    if (!(error instanceof FarthingError) || error.code !== 'already_exists') throw error;
    throw new FarthingError('service_unavailable', `${entity} ${record.id} is being copied by another run`);
  }
  return target_id;
}

/**
 * Returns the field by which a copy references its first version. The version that is copied first becomes the first version in the target.
 */
async function findCopiedLineage(
  copying: CopyContext,
  entity: string,
  record: Copyable,
): Promise<Record<string, string>> {
  const { source, target, database } = copying;
  const noun = getNoun(entity);
  if (!noun.root) return {};
  for (const { id } of (await noun.before?.(source, record, database)) ?? []) {
    const pair = await findCopyPair(copying, entity, id);
    if (!pair) continue;
    const version = (await noun.fetch(target, pair.target_id, { database })) as unknown as Record<string, string>;
    return { [noun.root]: version[noun.root] || pair.target_id };
  }
  return { [noun.root]: '' };
}

/** Returns the reference fields, with the ids of the target records. */
async function findCounterparts(
  copying: CopyContext,
  entity: string,
  record: Copyable,
): Promise<Record<string, string>> {
  const named: Record<string, string> = {};
  for (const [field, other] of Object.entries(getNoun(entity).refs(record))) {
    const id = (record as unknown as Record<string, string | null | undefined>)[field];
    if (!id) continue;
    const pair = await findCopyPair(copying, other, id);
    named[field] =
      pair?.target_id ?? copying.stand_ins.get(formatRecordKey(other, id)) ?? (await copyNamed(copying, other, id));
  }
  return named;
}

async function copyNamed(copying: CopyContext, entity: string, id: string): Promise<string> {
  const { source, target, database } = copying;
  const noun = getNoun(entity);
  const record = await noun.fetch(source, id, { database });
  if (record.status !== 'published') throw notAllowed(`${entity} ${id} is ${record.status}, and is needed`);
  // If the target has a record with this key and another meaning, it is not used: the copy then fails with the conflict.
  const there = await noun.byKey?.(target, record, database);
  return there && noun.isSame?.(record, there) ? there.id : copyRecord(copying, entity, record);
}

function findCopyPair({ target, source, database }: CopyContext, entity: string, source_id: string) {
  const pairKey = { source_environment_id: source.environment_id, entity, source_id };
  return EnvironmentCopyModel.findPair(target, pairKey, database);
}

function formatRecordKey(entity: string, id: string): string {
  return `${entity}/${id}`;
}

function getNoun(entity: string): CopiedNoun {
  const noun = COPIED[entity];
  if (!noun) throw new Error(`${entity} is not in the list of what is copied`);
  return noun;
}
