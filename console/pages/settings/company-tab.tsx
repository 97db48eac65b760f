/** Company and seller: the issuer of the invoices and their appearance, with the letterhead and the PDF of what is not saved beside it. */
import { ColorInput, Select, Textarea } from '@mantine/core';
import '@mantine/core/styles/ColorSwatch.layer.css';
import '@mantine/core/styles/ColorPicker.layer.css';
import '@mantine/core/styles/ColorInput.layer.css';
import { useQueryClient } from '@tanstack/react-query';
import { type FormEvent, type ReactNode, useState } from 'react';
import { ApiError, api } from '../../client/client.ts';
import { invalidate, useGet } from '../../client/queries.ts';
import { useSession } from '../../client/session.ts';
import { Choice } from '../../components/choice.tsx';
import { findFieldError } from '../../components/field-errors.ts';
import { useDeed } from '../../components/form.tsx';
import { Columns, Sheet } from '../../components/page.tsx';
import { Loaded } from '../../components/states.tsx';
import { useTexts } from '../../texts/texts.ts';
import { COMPANY_TEXTS } from './company-texts.ts';
import { DraftField, type DraftProps } from './draft-field.tsx';
import { Letterhead } from './letterhead.tsx';
import { LogoInput } from './logo-input.tsx';
import { PreviewPdf } from './preview-pdf.tsx';
import { SaveFoot } from './save-foot.tsx';
import { saveSetting, useSetting } from './setting-queries.ts';
import {
  type CompanyDraft,
  fillSeller,
  findDraftField,
  type PdfConfig,
  type TenantRecord,
  toCompanyDraft,
  toPdfConfig,
  toTenantBody,
} from './setting-records.ts';
import styles from './settings.module.css';

const DOCUMENT_LANGUAGES = ['en', 'de', 'el', 'es', 'fr', 'it', 'nl', 'pl', 'pt', 'sv', 'uk'] as const;

export function CompanyTab(): ReactNode {
  const session = useSession();
  const tenant = useGet('/tenants/{id}', { path: { id: session.tenant.id } });
  const pdf = useSetting<PdfConfig>('invoice_pdf_config');
  return (
    <Loaded query={tenant}>
      {(loaded) => <Loaded query={pdf}>{(config) => <CompanyForm tenant={loaded} pdf={config} />}</Loaded>}
    </Loaded>
  );
}

function CompanyForm({ tenant, pdf }: { tenant: TenantRecord; pdf: PdfConfig }): ReactNode {
  const texts = useTexts(COMPANY_TEXTS);
  const queries = useQueryClient();
  const [draft, setDraft] = useState(() => toCompanyDraft(tenant, pdf));
  const [saved, setSaved] = useState(draft);
  const save = useDeed(
    async () => {
      if (JSON.stringify(toTenantBody(draft)) !== JSON.stringify(toTenantBody(saved)))
        await api.PUT('/tenants/update', { body: toTenantBody(draft) });
      await saveSetting(queries, 'invoice_pdf_config', toPdfConfig(draft));
    },
    async () => {
      setSaved(draft);
      await invalidate(queries, '/tenants', '/auth/session');
    },
  );
  const isChanged = JSON.stringify(draft) !== JSON.stringify(saved);
  const change = (fields: Partial<CompanyDraft>) => setDraft((old) => ({ ...old, ...fields }));
  const form: DraftProps = { draft, deed: save, onChange: change };
  const submit = (event: FormEvent) => {
    event.preventDefault();
    save.mutate(undefined);
  };
  return (
    <Columns
      side={
        <div className={styles.preview}>
          <Sheet>
            <Letterhead draft={draft} />
            <PreviewPdf
              body={{
                invoice_pdf_config: toPdfConfig(draft),
                tenant: toTenantBody(draft) as { name: string },
              }}
            />
          </Sheet>
        </div>
      }
    >
      <Sheet>
        <form onSubmit={submit} aria-label={texts.company}>
          <IssuerPart {...form} />
          <SellerPart {...form} />
          <DocumentsPart {...form} />
          <SaveFoot
            save={save}
            fields={listShownFields(save.error, draft)}
            needs={['tenant:write', 'setting:write']}
            isChanged={isChanged}
          />
        </form>
      </Sheet>
    </Columns>
  );
}

function IssuerPart(form: DraftProps): ReactNode {
  const texts = useTexts(COMPANY_TEXTS);
  return (
    <div className={styles.part}>
      <h2>{texts.company}</h2>
      <p className={styles.hint}>{texts.companyHint}</p>
      <DraftField {...form} field="name" isRequired />
      <div className={styles.pair}>
        <DraftField {...form} field="address_line1" />
        <DraftField {...form} field="address_line2" />
      </div>
      <div className={styles.pair}>
        <DraftField {...form} field="address_postal_code" />
        <DraftField {...form} field="address_city" />
      </div>
      <div className={styles.pair}>
        <DraftField {...form} field="address_state" />
        <DraftField {...form} field="address_country" />
      </div>
      <div className={styles.pair}>
        <DraftField {...form} field="email" />
        <DraftField {...form} field="help_email" />
        <DraftField {...form} field="phone" />
      </div>
    </div>
  );
}

function SellerPart(form: DraftProps): ReactNode {
  const texts = useTexts(COMPANY_TEXTS);
  const { draft, onChange } = form;
  return (
    <div className={styles.part}>
      <h2>{texts.seller}</h2>
      <Choice
        label={texts.seller}
        value={draft.has_seller ? 'own' : 'company'}
        onValue={(value) => onChange(value === 'own' ? fillSeller(draft) : { has_seller: false })}
        options={[
          { value: 'company', label: texts.asCompany },
          { value: 'own', label: texts.ownSeller },
        ]}
      />
      {draft.has_seller ? (
        <>
          <DraftField {...form} field="seller_name" isRequired />
          <DraftField {...form} field="seller_lines" isLong />
          <div className={styles.pair}>
            <DraftField {...form} field="tax_id" />
            <DraftField {...form} field="seller_email" />
            <DraftField {...form} field="website" />
          </div>
        </>
      ) : (
        <p className={styles.hint}>{texts.taxNumberHint}</p>
      )}
    </div>
  );
}

function DocumentsPart({ draft, deed, onChange }: DraftProps): ReactNode {
  const texts = useTexts(COMPANY_TEXTS);
  return (
    <div className={styles.part}>
      <h2>{texts.documents}</h2>
      <LogoInput logo={draft.logo} error={findFieldError(deed, 'value.logo')} onLogo={(logo) => onChange({ logo })} />
      <div className={styles.pair}>
        <ColorInput
          label={texts.colour}
          format="hex"
          eyeDropperButtonProps={{ 'aria-label': texts.pickColour }}
          value={draft.color}
          error={findFieldError(deed, 'value.color')}
          onChange={(color) => onChange({ color })}
        />
        <Select
          label={texts.language}
          allowDeselect={false}
          value={draft.language}
          onChange={(value) => onChange({ language: value ?? draft.language })}
          data={DOCUMENT_LANGUAGES.map((tag) => ({ value: tag, label: nameLanguage(tag) }))}
        />
      </div>
      <div>
        <h3>{texts.paper}</h3>
        <Choice
          label={texts.paper}
          value={draft.page_size}
          onValue={(page_size) => onChange({ page_size })}
          options={[
            { value: 'A4', label: 'A4' },
            { value: 'LETTER', label: 'Letter' },
          ]}
        />
      </div>
      <Textarea
        label={texts.payment_instructions}
        description={texts.paymentHint}
        autosize
        minRows={2}
        value={draft.payment_instructions}
        error={findFieldError(deed, 'value.payment_instructions')}
        onChange={({ currentTarget }) => onChange({ payment_instructions: currentTarget.value })}
      />
      <Textarea
        label={texts.notes}
        autosize
        minRows={2}
        value={draft.notes}
        error={findFieldError(deed, 'value.notes')}
        onChange={({ currentTarget }) => onChange({ notes: currentTarget.value })}
      />
    </div>
  );
}

/** The field that an error names, if the form has it and shows the error there. */
function listShownFields(error: Error | null, draft: CompanyDraft): string[] {
  if (!(error instanceof ApiError) || error.field === null) return [];
  return Object.hasOwn(draft, findDraftField(error.field)) ? [error.field] : [];
}

/** The name of a language in itself, as in "Deutsch". */
function nameLanguage(tag: string): string {
  return new Intl.DisplayNames([tag], { type: 'language' }).of(tag) ?? tag;
}
