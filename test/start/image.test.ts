/** The image holds what its processes import: .dockerignore lets folders in by name, and a new one is easily forgotten. */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { expect } from 'chai';

const ROOT = join(import.meta.dirname, '..', '..');
const read = (file: string) => readFileSync(join(ROOT, file), 'utf8');

describe('the image', () => {
  const letIn = [...read('.dockerignore').matchAll(/^!(.+)$/gm)].map(([, name]) => name!);

  // What docker-compose.yml starts, and the commands of docs/operations.md that are run beside it.
  const entrances = [
    'api/main.ts',
    'pipeline/main.ts',
    'scheduler/main.ts',
    'sql/migrate.ts',
    'commands/audit.ts',
    'commands/partitions.ts',
  ];
  for (const entrance of entrances) {
    it(`holds every file that ${entrance} needs`, () => {
      const needed = importedBy(entrance);
      expect(needed.size).to.be.greaterThan(5);
      expect([...needed].filter((file) => !letIn.includes(file.split('/')[0]!))).to.deep.equal([]);
    });
  }
});

function importedBy(file: string, found = new Set<string>()): Set<string> {
  if (found.has(file)) return found;
  found.add(file);
  for (const [, path] of read(file).matchAll(/(?:from|import|import\() ?'(\.[^']+)'/g)) {
    const imported = relative(ROOT, join(ROOT, dirname(file), path!));
    if (existsSync(join(ROOT, imported)) && imported.endsWith('.ts')) importedBy(imported, found);
  }
  return found;
}
