/** The forms of the settings as records of the API, and the words of sessions and webhooks. */
import { expect } from 'chai';
import { nameBrowser } from '../../console/pages/settings/name-browser.ts';
import { describeRole, nameRole, ROLE_TEXTS } from '../../console/pages/settings/role-texts.ts';
import {
  fillSeller,
  findDraftField,
  listAddressLines,
  type PdfConfig,
  type TenantRecord,
  toCompanyDraft,
  toPdfConfig,
  toTenantBody,
  toWholeNumber,
} from '../../console/pages/settings/setting-records.ts';
import { deriveEndpointState, formatAnswer, groupEventNames } from '../../console/pages/webhooks/webhook-records.ts';
import { ROLES } from '../../core/foundation/access/role.ts';

const tenant = {
  name: 'Orchard Works',
  billing_details: {
    email: 'books@orchard.example',
    address: { address_line1: 'Lane 4', address_postal_code: '10115', address_city: 'Berlin', address_country: 'de' },
  },
} as TenantRecord;
const pdf: PdfConfig = {
  language: 'en',
  color: '#1f4e79',
  page_size: 'A4',
  logo: null,
  company: null,
  payment_instructions: null,
  notes: null,
};

describe('settings of the console', () => {
  it('names and describes each role of the API in each language', () => {
    for (const language of ['en', 'de'] as const)
      for (const role of ROLES) {
        expect(ROLE_TEXTS[language], `${language} ${role.id}`).to.have.property(role.id);
        expect(describeRole(ROLE_TEXTS[language], { ...role, description: '' }), role.id).to.not.equal('');
      }
    expect(nameRole(ROLE_TEXTS.de, { id: 'auditor', name: 'Auditor' })).to.equal('Auditor');
  });

  it('turns the records into a form and back without a change', () => {
    const draft = toCompanyDraft(tenant, pdf);
    expect(toPdfConfig(draft)).to.deep.equal(pdf);
    expect(toTenantBody(draft).billing_details).to.deep.equal({
      email: 'books@orchard.example',
      help_email: null,
      phone: null,
      address: {
        address_line1: 'Lane 4',
        address_line2: null,
        address_postal_code: '10115',
        address_city: 'Berlin',
        address_state: null,
        address_country: 'de',
      },
    });
  });

  it('begins a seller of its own with the company, and never over one that is there', () => {
    const draft = fillSeller(toCompanyDraft(tenant, pdf));
    expect(toPdfConfig({ ...draft, tax_id: ' DE1 ' }).company).to.deep.equal({
      name: 'Orchard Works',
      lines: ['Lane 4', '10115 Berlin', 'DE'],
      tax_id: 'DE1',
      email: 'books@orchard.example',
      website: null,
    });
    const changed = fillSeller({ ...draft, has_seller: false, seller_name: 'Orchard GmbH' });
    expect(changed.seller_name).to.equal('Orchard GmbH');
  });

  it('leaves parts of an address out that are empty', () => {
    expect(listAddressLines(toCompanyDraft({ ...tenant, billing_details: null }, pdf))).to.deep.equal([]);
  });

  const fields: [string, string][] = [
    ['billing_details.address.address_country', 'address_country'],
    ['tenant.billing_details.email', 'email'],
    ['value.company.email', 'seller_email'],
    ['value.company.lines.2', 'seller_lines'],
    ['invoice_pdf_config.company.name', 'seller_name'],
    ['value.logo', 'logo'],
    ['name', 'name'],
  ];
  for (const [field, expected] of fields)
    it(`shows an error of ${field} at ${expected}`, () => expect(findDraftField(field)).to.equal(expected));

  const numbers: [string, number | string][] = [
    ['14', 14],
    [' 0 ', 0],
    ['soon', 'soon'],
    ['1.5', '1.5'],
    ['', ''],
  ];
  for (const [text, expected] of numbers)
    it(`sends "${text}" as ${JSON.stringify(expected)}`, () => expect(toWholeNumber(text)).to.equal(expected));

  const agents: [string | null, string | null][] = [
    ['Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0', 'Firefox, Linux'],
    ['Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 Chrome/156.0 Safari/537.36 Edg/156.0', 'Edge, Windows'],
    ['Mozilla/5.0 (iPhone; CPU iPhone OS 19_0 like Mac OS X) Version/19.0 Safari/604.1', 'Safari, iPhone'],
    ['curl/8.9', 'curl/8.9'],
    ['', null],
    [null, null],
  ];
  for (const [agent, expected] of agents)
    it(`names ${agent} ${expected}`, () => expect(nameBrowser(agent)).to.equal(expected));
});

describe('webhooks of the console', () => {
  it('derives the state of an endpoint from its status and its failures', () => {
    expect(deriveEndpointState({ endpoint_status: 'enabled', failing_since: null })).to.equal('enabled');
    expect(deriveEndpointState({ endpoint_status: 'enabled', failing_since: '2026-11-30T10:00:00Z' })).to.equal(
      'failing',
    );
    expect(deriveEndpointState({ endpoint_status: 'disabled', failing_since: '2026-11-30T10:00:00Z' })).to.equal(
      'disabled',
    );
  });

  it('groups event names by the kind of their record', () => {
    expect(groupEventNames(['invoice.finalized', 'customer.created', 'invoice.voided'])).to.deep.equal([
      { group: 'invoice', event_names: ['invoice.finalized', 'invoice.voided'] },
      { group: 'customer', event_names: ['customer.created'] },
    ]);
  });

  it('indents an answer in JSON and leaves any other as it is', () => {
    expect(formatAnswer('{"ok":true}')).to.equal('{\n  "ok": true\n}');
    expect(formatAnswer('<html>')).to.equal('<html>');
  });
});
