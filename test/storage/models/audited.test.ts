import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { AUDITED_TYPES } from '../../../core/platform/audit/kinds.ts';

const MODELS = join(import.meta.dirname, '../../../storage/models');

describe('what the audit log can be asked for', () => {
  it('is every kind of record that the models tell it', async () => {
    const told = new Set<string>();
    const files = readdirSync(MODELS, { recursive: true, encoding: 'utf8' });
    for (const file of files.filter((path) => path.endsWith('.ts'))) {
      const module: Record<string, unknown> = await import(join(MODELS, file));
      for (const model of Object.values(module)) if (isAudited(model)) told.add(typeOf(model));
    }
    expect([...AUDITED_TYPES]).to.deep.equal([...told].sort());
  });
});

type Model = { tableName: string; recordName: string; isAudited: boolean };

function isAudited(model: unknown): model is Model {
  return typeof model === 'function' && Object.hasOwn(model, 'tableName') && (model as unknown as Model).isAudited;
}

function typeOf({ recordName }: Model): string {
  return recordName.toLowerCase().replaceAll('-', '').replaceAll(' ', '_');
}
