/** The meters that one partition applies at its offset of the log. Only control messages change them, so a replay gives equal counts. */

import { type Scope, scopeKey } from '../../core/foundation/scope.ts';
import { compileMeters, type MeterIndex } from '../../core/metering/match.ts';
import type { Database } from '../../storage/foundation/stores.ts';
import { listVersionsAt, type MeterVersion } from '../../storage/progress/meter-versions.ts';

const NO_METERS: MeterIndex = new Map();

export class MeterCatalogue {
  readonly #byScope = new Map<string, MeterIndex>();
  readonly #versions = new Map<string, number>();

  static async at(database: Database, partition: number, offset: bigint): Promise<MeterCatalogue> {
    return new MeterCatalogue(await listVersionsAt(database, partition, offset));
  }

  constructor(versions: readonly MeterVersion[]) {
    const definitions = new Map<string, MeterVersion[]>();
    for (const version of versions) {
      if (version.definition === null) continue;
      this.#versions.set(version.meter_id, version.version);
      const key = scopeKey(version);
      const some = definitions.get(key);
      if (some) some.push(version);
      else definitions.set(key, [version]);
    }
    for (const [key, some] of definitions)
      this.#byScope.set(key, compileMeters(some.map((version) => version.definition!)));
  }

  findMeters(scope: Scope): MeterIndex {
    return this.#byScope.get(scopeKey(scope)) ?? NO_METERS;
  }

  getVersion(meterId: string): number {
    const version = this.#versions.get(meterId);
    if (version === undefined) throw new Error(`meter ${meterId} is not in the catalogue`);
    return version;
  }
}
