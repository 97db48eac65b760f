/** Redocly finds nothing wrong with the OpenAPI document; its warnings are errors here. Spectral checks it in openapi-spectral.test.ts. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { openApiDocument } from '../../api/http/openapi.ts';
import { routes } from '../../api/resources.ts';

const REDOCLY = join(import.meta.dirname, '../../node_modules/@redocly/cli/bin/cli.js');
const RULES = [
  '--extends=recommended-strict',
  // `/customers/external/{external_id}` beside `/customers/{id}/entitlements`: published clients ask there. Words go before parameters (mount.ts).
  '--skip-rule=no-ambiguous-paths',
];
// It asks nobody for a newer version, and tells nobody that it ran.
const ALONE = { REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' };

type Problem = { ruleId: string; message: string; location: { pointer: string }[] };

describe('Redocly', () => {
  const directory = mkdtempSync(join(tmpdir(), 'openapi-'));
  after(() => rmSync(directory, { recursive: true }));

  function problemsOf(document: object): string[] {
    const file = join(directory, 'openapi.json');
    writeFileSync(file, JSON.stringify(document));
    const asked = [REDOCLY, 'lint', file, ...RULES, '--format=json'];
    const { stdout, stderr } = spawnSync(process.execPath, asked, { encoding: 'utf8', env: ALONE, cwd: directory });
    expect(stdout, stderr).to.contain('"problems"');
    const { problems } = JSON.parse(stdout.slice(stdout.indexOf('{'))) as { problems: Problem[] };
    return problems.map(({ ruleId, message, location }) => `${ruleId} ${location[0]?.pointer}: ${message}`);
  }

  it('finds nothing in the OpenAPI document', () => {
    expect(problemsOf(openApiDocument(routes))).to.deep.equal([]);
  });

  it('finds an example that is not of its shape', () => {
    const [route] = routes.filter(({ operation_id }) => operation_id === 'createPlan');
    const document = openApiDocument([{ ...route!, example: { body: { name: 1 } } }]);
    expect(problemsOf(document).join('\n')).to.match(
      /no-invalid-media-type-examples .*`name` property type must be string/,
    );
  });
});
