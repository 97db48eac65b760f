/**
 * Answers that are kept in memory with all that they were made of, where the pipeline runs in the same process
 * (docs/decisions/0007-cached-answers.md). One holds while nothing that it read has changed: no record (look.ts), no instant has
 * come that it knew of, and no usage was lost. Usage that arrives is taken in by its lines (storage/usage/running-usage.ts), and the
 * answer is made of them again by whoever made it. Whatever else happens, it is made anew, exactly.
 */
import { LRUCache } from 'lru-cache';
import type { Scope } from '../../core/scope.ts';
import { isByTheMachine } from '../environment-clock.ts';
import type { Database, Stores } from '../stores.ts';
import { freshness } from '../usage/usage.ts';
import type { UsageMemory } from '../usage/usage-memory.ts';
import { GatherDesk, type Gathering } from './gather-desk.ts';
import { KeptAnswer, type Made, NotKept } from './kept-answer.ts';
import { countRunning } from './kept-metrics.ts';
import { KnownFreshness } from './known-freshness.ts';
import { type Look, nextLook, whenLooked } from './look.ts';
import { currentNotes, notedBy } from './noting.ts';

export type Fresh<Answer> = {
  readonly answer: Answer;
  /** Everything that was accepted before this instant is in it. */
  readonly as_of: string;
};

export type Asked = Scope & {
  /** With the scope it names the question. */
  readonly key: string;
  readonly now: Date;
  /** Records that it is about, whether or not a row of theirs is read. */
  readonly about?: readonly string[];
};

/** Reads what it goes by where it is told to. */
type Make<Answer> = (gathering: Gathering) => Promise<Made<Answer>>;

export async function keptAnswer<Answer>(stores: Stores, asked: Asked, make: Make<Answer>): Promise<Fresh<Answer>> {
  const { usage_memory } = stores;
  // Part of another one, which notes what is read here.
  if (usage_memory === undefined || currentNotes() !== undefined) return madeNow(stores, asked, make);
  const kept = keptIn(usage_memory);
  const desk = deskOf(stores.postgres);
  // Before the progress is looked at: the answer is then at least as fresh as it says.
  const as_of = await kept.freshness.of(stores, asked);
  const look = await lookAt(stores, kept);
  const known = kept.find<Answer>(asked, asked.key, look);
  return { answer: known === undefined ? await kept.make(asked, { look, desk }, make) : known, as_of };
}

/** What is kept, as of one look. */
export type KeptView = {
  /** Everything that was accepted before this instant is in its answers. */
  readonly as_of: string;
  /** Undefined where it has to be made anew. */
  find<Answer>(key: string): Answer | undefined;
};

type View = Omit<Asked, 'key'>;

/** Several answers of what is kept already; undefined where one has to be made anew. */
export async function fromKept<Answer>(
  stores: Stores,
  asked: View,
  of: (find: KeptView['find']) => Answer | undefined,
): Promise<Fresh<Answer> | undefined> {
  const { usage_memory } = stores;
  if (usage_memory === undefined) return undefined;
  const kept = keptIn(usage_memory);
  const as_of = await kept.freshness.of(stores, asked);
  const look = await lookAt(stores, kept);
  const answer = of((key) => kept.find(asked, key, look));
  return answer === undefined ? undefined : { answer, as_of };
}

/** For whoever is asked thousands of times a second; null where something that all answers go by has to be read first. */
export function viewKept(stores: Stores, asked: View, told: (view: KeptView | null) => void): void {
  const { usage_memory, postgres } = stores;
  if (usage_memory === undefined || !isByTheMachine(postgres, asked, asked.now.getTime())) return told(null);
  const kept = keptIn(usage_memory);
  const as_of = kept.freshness.known(stores, asked);
  if (as_of === undefined) return told(null);
  whenLooked(postgres, (look) => {
    if (look === null) return told(null);
    kept.follow(look);
    told(new ViewAtLook(as_of, { kept, asked, look }));
  });
}

class ViewAtLook implements KeptView {
  readonly as_of: string;
  readonly #at: { readonly kept: KeptAnswers; readonly asked: View; readonly look: Look };

  constructor(as_of: string, at: { readonly kept: KeptAnswers; readonly asked: View; readonly look: Look }) {
    this.as_of = as_of;
    this.#at = at;
  }

  find<Answer>(key: string): Answer | undefined {
    return this.#at.kept.find(this.#at.asked, key, this.#at.look);
  }
}

/** What was answered last, whether or not it still holds: not to be told to anybody. */
export function keptLast({ usage_memory }: Stores, scope: Scope): KeptView | undefined {
  if (usage_memory === undefined) return undefined;
  const kept = keptIn(usage_memory);
  return { as_of: '', find: <Answer>(key: string) => kept.last<Answer>(scope, key) };
}

async function lookAt({ postgres }: Stores, kept: KeptAnswers): Promise<Look> {
  const look = await nextLook(postgres);
  kept.follow(look);
  return look;
}

async function madeNow<Answer>(stores: Stores, asked: Asked, make: Make<Answer>) {
  const as_of = await freshness(stores, asked, asked.now.getTime());
  return { answer: (await make({ database: stores.postgres, now: asked.now })).answer, as_of };
}

/** Of all, and of one tenant: so that the customers of one do not take the places of all others. */
const ANSWERS_MAX = 500_000;
const TENANT_ANSWERS_MAX = 420_000;

const memories = new WeakMap<UsageMemory, KeptAnswers>();
const desks = new WeakMap<Database, GatherDesk>();

function deskOf(postgres: Database): GatherDesk {
  let desk = desks.get(postgres);
  if (desk === undefined) desks.set(postgres, (desk = new GatherDesk(postgres)));
  return desk;
}

export function keptIn(memory: UsageMemory): KeptAnswers {
  let kept = memories.get(memory);
  if (kept === undefined) memories.set(memory, (kept = new KeptAnswers(memory)));
  return kept;
}

/**
 * In the order in which they were asked for. Not a map from which each that is asked for is taken and put behind the others: one of
 * hundreds of thousands is then made anew, as a whole and at one moment, each time that its places are used up.
 */
type OfTenant = LRUCache<string, KeptAnswer>;

/** Without a number of places, which would all be there for each tenant, however few are used. */
function ofTenant(): OfTenant {
  return new LRUCache({ maxSize: TENANT_ANSWERS_MAX + 1, sizeCalculation: () => 1 });
}

type Gathered<Answer> = { readonly kept: KeptAnswer; readonly answer: Answer };
type At = { readonly look: Look; readonly desk: GatherDesk };
/** Until it has begun, it is for whoever asks the same. */
type Making = { readonly look: number; hasBegun: boolean; readonly gathered: Promise<Gathered<unknown>> };

export class KeptAnswers {
  readonly freshness = new KnownFreshness();
  readonly #memory: UsageMemory;
  readonly #tenants = new Map<string, OfTenant>();
  readonly #making = new Map<string, Making>();
  #count = 0;
  #followed = 0;

  constructor(memory: UsageMemory) {
    this.#memory = memory;
  }

  /** Once for all who were told of the look. */
  follow({ number, progress }: Look): void {
    if (number === this.#followed) return;
    this.#followed = number;
    this.#memory.follow(progress);
  }

  /** As of the look, or undefined. No answer is undefined. */
  find<Answer>({ tenant_id, environment_id, now }: View, key: string, look: Look): Answer | undefined {
    const known = this.#tenants.get(tenant_id)?.get(`${environment_id} ${key}`);
    if (known === undefined) return undefined;
    if (known.holds(look, now.getTime())) {
      try {
        return known.current() as Answer;
      } catch (error) {
        if (!(error instanceof NotKept)) throw error;
      }
    }
    this.drop(known);
    return undefined;
  }

  last<Answer>({ tenant_id, environment_id }: Scope, key: string): Answer | undefined {
    return this.#tenants.get(tenant_id)?.peek(`${environment_id} ${key}`)?.last as Answer | undefined;
  }

  /** Whoever asks before it has begun to be gathered, or while it is since a look that is no older than his own, is answered by that. */
  async make<Answer>(asked: Asked, at: At, make: Make<Answer>): Promise<Answer> {
    const name = `${asked.tenant_id} ${asked.environment_id} ${asked.key}`;
    const making = this.#making.get(name);
    if (making && (!making.hasBegun || making.look >= at.look.number)) {
      const { kept, answer } = await making.gathered;
      if (!kept.isOver(asked.now.getTime())) return answer as Answer;
    }
    const gather = (gathering: Gathering) => {
      own.hasBegun = true;
      return this.#gather(asked, { look: at.look, gathering }, make);
    };
    const gathered = at.desk.ask(asked, asked.now, gather);
    const own: Making = { look: at.look.number, hasBegun: false, gathered };
    this.#making.set(name, own);
    try {
      return (await gathered).answer;
    } finally {
      if (this.#making.get(name) === own) this.#making.delete(name);
    }
  }

  async #gather<Answer>(
    { tenant_id, environment_id, key, about = [] }: Asked,
    { look, gathering }: { look: Look; gathering: Gathering },
    make: Make<Answer>,
  ): Promise<Gathered<Answer>> {
    const scope = { tenant_id, environment_id };
    const { now } = gathering;
    const named = { scope, key: `${environment_id} ${key}`, look, now, about: [environment_id, ...about] };
    const kept = new KeptAnswer(named, this.#memory);
    countRunning('gathered');
    try {
      const made = await notedBy(kept, () => make(gathering));
      if (kept.complete(made as Made<unknown>)) this.#put(kept);
      else kept.end();
      return { kept, answer: made.answer };
    } catch (error) {
      kept.end();
      throw error;
    }
  }

  drop(kept: KeptAnswer): void {
    const own = this.#tenants.get(kept.tenant_id);
    if (own?.peek(kept.key) === kept) {
      own.delete(kept.key);
      this.#count--;
      if (own.size === 0) this.#tenants.delete(kept.tenant_id);
    }
    kept.end();
  }

  /** So many of those that are kept now, from a place that chance says, for the audit. */
  some(count: number, chance: () => number): KeptAnswer[] {
    const some: KeptAnswer[] = [];
    let left = Math.floor(chance() * Math.max(1, this.#count - count + 1));
    for (const own of this.#tenants.values()) {
      if (left >= own.size) left -= own.size;
      else
        for (const kept of own.rvalues()) {
          if (kept === undefined || left-- > 0) continue;
          if (some.push(kept) === count) return some;
        }
    }
    return some;
  }

  #put(kept: KeptAnswer): void {
    const before = this.#tenants.get(kept.tenant_id)?.peek(kept.key);
    if (before) this.drop(before);
    let own = this.#tenants.get(kept.tenant_id);
    if (own === undefined) this.#tenants.set(kept.tenant_id, (own = ofTenant()));
    own.set(kept.key, kept);
    this.#count++;
    if (own.size > TENANT_ANSWERS_MAX) this.#dropOldest(own);
    // The tenant with the most gives one up.
    if (this.#count > ANSWERS_MAX)
      this.#dropOldest([...this.#tenants.values()].reduce((most, some) => (some.size > most.size ? some : most)));
  }

  #dropOldest(own: OfTenant): void {
    const [oldest] = own.rvalues();
    if (oldest) this.drop(oldest);
  }
}
