/** An aggregation is one file in core/metering/aggregations and one line of its index: nothing else of the product lists or names it. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { AGGREGATIONS } from '../../../core/metering/aggregations/index.ts';
import { expectGoldenFile } from '../../support/golden.ts';
import { VERIFIER } from '../../support/verifier.ts';
import { withAggregations } from '../../support/verifier-aggregations.ts';

const ROOT = join(import.meta.dirname, '..', '..', '..');
const FOLDERS = ['core', 'actions', 'api', 'storage', 'pipeline', 'scheduler', 'integrations', 'process', 'commands'];

/** Files that may name an aggregation, and why. */
const NAMING: Readonly<Record<string, string>> = {
  'core/catalog/feature/request.ts': 'an example of a request',
  'core/catalog/parsing/configure.ts': 'chooses the aggregation that a description of prices means',
  'api/metering/meters/routes.ts': 'an example of a request',
  'api/metering/usage/routes.ts': 'an example of a request',
  'api/reporting/meter-usage/routes.ts': 'an example of a request',
};

describe('aggregations', () => {
  it('are named by no file but their own', () => {
    const quoted = new RegExp(`'(?:${Object.keys(AGGREGATIONS).join('|')})'`);
    const found = FOLDERS.flatMap((folder) =>
      readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
        .map((name) => `${folder}/${name}`)
        .filter((file) => file.endsWith('.ts') && !file.startsWith('core/metering/aggregations/'))
        .filter((file) => quoted.test(readFileSync(join(ROOT, file), 'utf8'))),
    );
    expect(
      found.sort(),
      'ask the properties of the aggregation (core/metering/aggregations/aggregation.ts)',
    ).to.deep.equal(Object.keys(NAMING).sort());
  });

  it('are in verify-invoice.mjs as their own files have them', () => {
    expectGoldenFile(VERIFIER, withAggregations(readFileSync(VERIFIER, 'utf8'), AGGREGATIONS));
  });
});
