/**
 * veraPDF validates documents against PDF/UA-1 (docs/rules/documents.md, "For screen readers"). It needs Java and Maven, so it runs only if
 * it is named.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { buildCreditNoteDocument } from '../../core/invoicing/document/credit-note.ts';
import { buildInvoiceDocument } from '../../core/invoicing/document/document.ts';
import { LANGUAGES } from '../../core/invoicing/document/language.ts';
import { renderPdf } from '../../integrations/pdf/render.ts';
import { ensureJars } from '../support/jars.ts';
import { printedCreditNote, printedInvoice } from '../support/printed-invoice.ts';

/** Script of Rhino, which is among the jars: prints the failed rules of each of `files`. */
const VALIDATE = `
  Packages.org.verapdf.gf.foundry.VeraGreenfieldFoundryProvider.initialise();
  var foundry = Packages.org.verapdf.pdfa.Foundries.defaultInstance();
  var flavour = Packages.org.verapdf.pdfa.flavours.PDFAFlavour.PDFUA_1;
  for (var i = 0; i < files.length; i++) {
    var parser = foundry.createParser(new java.io.FileInputStream(files[i]), flavour);
    var result = foundry.createValidator(flavour, false).validate(parser);
    var failed = {};
    for (var each = result.getTestAssertions().iterator(); each.hasNext(); ) {
      var one = each.next();
      if (String(one.getStatus()) === 'FAILED') failed[one.getRuleId().getClause() + ' ' + one.getMessage()] = true;
    }
    print('checked ' + result.getTotalAssertions() + ' ' + files[i] + ': ' + Object.keys(failed).join('; '));
    parser.close();
  }`;

const LOGO =
  'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

const DOCUMENTS = {
  ...Object.fromEntries(
    LANGUAGES.map((language) => [`invoice ${language}`, buildInvoiceDocument(printedInvoice({ language }))]),
  ),
  'credit note': buildCreditNoteDocument(printedCreditNote()),
  'draft with a logo, of several pages': buildInvoiceDocument(
    printedInvoice(
      { logo: LOGO },
      {
        invoice: { invoice_status: 'DRAFT' },
        lines: Array.from({ length: 100 }, (_none, index) => ({ display_name: `Line ${index}`, amount: '1' })),
      },
    ),
  ),
  Chinese: buildInvoiceDocument(printedInvoice({}, { customer: { name: '北京直骨科技', address_country: 'CN' } })),
  Japanese: buildInvoiceDocument(printedInvoice({}, { customer: { name: '株式会社サンプル', address_country: 'JP' } })),
  Korean: buildInvoiceDocument(printedInvoice({}, { customer: { name: '주식회사 예시', address_country: 'KR' } })),
  Arabic: buildInvoiceDocument(printedInvoice({}, { customer: { name: 'شركة نور 12', address_country: 'SA' } })),
  Thai: buildInvoiceDocument(printedInvoice({}, { customer: { name: 'บริษัท ไทย', address_country: 'TH' } })),
};

describe('documents by PDF/UA-1', function () {
  this.timeout(240_000);
  const directory = mkdtempSync(join(tmpdir(), 'farthing-pdfua-'));
  after(() => rmSync(directory, { recursive: true, force: true }));

  it('are valid for veraPDF, in every language and script', async () => {
    const pom = join(import.meta.dirname, 'pom.xml');
    const jars = ensureJars({ name: 'verapdf', pom, what: 'veraPDF' });
    const files: string[] = [];
    for (const [name, document] of Object.entries(DOCUMENTS)) {
      const file = join(directory, `${name}.pdf`);
      writeFileSync(file, await renderPdf(document, { fonts: null, asker: 'tenant' }));
      files.push(file);
    }
    const shell = [
      '-cp',
      `${jars}/*`,
      'org.mozilla.javascript.tools.shell.Main',
      '-e',
      `var files = ${JSON.stringify(files)};${VALIDATE}`,
    ];
    const { stdout, stderr, status } = spawnSync('java', shell, { encoding: 'utf8' });
    expect(status, stderr).to.equal(0);
    const verdicts = stdout.split('\n').filter((line) => line.startsWith('checked'));
    expect(verdicts, stderr).to.have.length(files.length);
    for (const verdict of verdicts) expect(verdict).to.match(/^checked \d{4,} .*\.pdf: $/);
  });
});
