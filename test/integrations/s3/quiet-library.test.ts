/** The library of S3 prints nothing into the log of the service. */
import { spawnSync } from 'node:child_process';
import { expect } from 'chai';

describe('the S3 library', () => {
  it('prints no notice of other versions of Node', () => {
    const program = `
      const { loadS3Library } = await import('./integrations/s3/client.ts');
      const { S3Client } = await loadS3Library();
      new S3Client({ region: 'eu-central-1' });
      console.log('made');`;
    const args = ['--import', './process/typescript.mjs', '--input-type=module', '--eval', program];
    const { stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' });
    expect([stdout, stderr]).to.deep.equal(['made\n', '']);
  });
});
