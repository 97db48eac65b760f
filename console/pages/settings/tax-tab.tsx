/** The tax rates of the environment, and the order of taxes and credits. A rate taxes what it is attached to: here, the company. */
import { Select, Switch, TextInput } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { useSearch } from '@tanstack/react-router';
import { type FormEvent, type ReactNode, useState } from 'react';
import { api, readData } from '../../client/client.ts';
import type { components } from '../../client/openapi.d.ts';
import { useMayNot } from '../../client/permission.ts';
import { invalidate, useGet } from '../../client/queries.ts';
import { showApiText } from '../../components/api-text.ts';
import { Button } from '../../components/button.tsx';
import { Chip } from '../../components/chip.tsx';
import { Choice } from '../../components/choice.tsx';
import { CopyId } from '../../components/copy.tsx';
import { type Column, DataTable } from '../../components/data-table.tsx';
import { findFieldError } from '../../components/field-errors.ts';
import { FormFoot, useDeed } from '../../components/form.tsx';
import { NumberInput } from '../../components/number-input.tsx';
import { Facts, Section, Sheet } from '../../components/page.tsx';
import { RecordTools } from '../../components/record-tools.tsx';
import { SideSheet } from '../../components/side-sheet.tsx';
import { Empty, Loaded } from '../../components/states.tsx';
import { formatQuantity } from '../../figures/format.ts';
import { useLanguage, useTexts } from '../../texts/texts.ts';
import { saveSetting, useSetting } from './setting-queries.ts';
import styles from './settings.module.css';
import type { SheetProps, TabProps } from './tab-props.ts';
import { TAX_TEXTS } from './tax-texts.ts';

type TaxRateRecord = components['schemas']['TaxRateResponse'];
type TaxOrder = { taxes_before_credits: boolean };
const RATES_MAX = 200;
const ratesQuery = { query: { limit: RATES_MAX } };
const tenantQuery = { query: { entity_type: 'tenant', limit: RATES_MAX } } as never;

export function TaxTab({ openSheet }: TabProps): ReactNode {
  const texts = useTexts(TAX_TEXTS);
  const language = useLanguage();
  const mayNot = useMayNot('tax:write');
  const { id } = useSearch({ from: '/env/$environment_id/settings' });
  const rates = useGet('/taxes/rates', ratesQuery);
  const attached = useGet('/taxes/associations', tenantQuery);
  const order = useSetting<TaxOrder>('tax_config');
  const create = (
    <Button isPrimary blocked={mayNot} onClick={() => openSheet({ sheet: 'new' })}>
      {texts.create}
    </Button>
  );
  const everywhere = new Set(attached.data?.items.map(({ tax_rate_id }) => tax_rate_id));
  const columns: Column<TaxRateRecord>[] = [
    {
      key: 'name',
      header: texts.name,
      narrow: 'first',
      width: 'minmax(120px, 2fr)',
      cell: ({ name }) => <bdi>{name}</bdi>,
    },
    { key: 'code', header: texts.code, cell: ({ code }) => <span className="mono">{code}</span> },
    { key: 'value', header: texts.rate, isFigure: true, narrow: 'end', cell: (rate) => formatRate(rate, language) },
    { key: 'behavior', header: texts.behavior, cell: ({ tax_behavior }) => texts[tax_behavior] },
    { key: 'reach', header: texts.applies, cell: (rate) => (everywhere.has(rate.id) ? texts.everyone : texts.chosen) },
    {
      key: 'status',
      header: texts.status,
      width: '100px',
      cell: ({ tax_rate_status }) => (
        <Chip tone={tax_rate_status === 'ACTIVE' ? 'ok' : 'plain'}>{texts[tax_rate_status]}</Chip>
      ),
    },
  ];
  return (
    <>
      <div className={styles.toolbar}>
        <p>{texts.hint}</p>
        {create}
      </div>
      <Loaded query={rates}>
        {(items) =>
          items.length === 0 ? (
            <Empty title={texts.empty}>{texts.emptyHint}</Empty>
          ) : (
            <DataTable
              label={texts.rates}
              columns={columns}
              rows={items}
              rowKey={(rate) => rate.id}
              openKey={id ?? null}
              onOpen={(rate) => openSheet({ sheet: 'open', id: rate.id })}
            />
          )
        }
      </Loaded>
      <Section title={texts.order}>
        <Loaded query={order} rows={2}>
          {(config) => <OrderSwitch config={config} />}
        </Loaded>
      </Section>
    </>
  );
}

function OrderSwitch({ config }: { config: TaxOrder }): ReactNode {
  const texts = useTexts(TAX_TEXTS);
  const mayNot = useMayNot('setting:write');
  const queries = useQueryClient();
  const save = useDeed((value: boolean) => saveSetting(queries, 'tax_config', { taxes_before_credits: value }));
  return (
    <Sheet padded>
      <Switch
        label={texts.before}
        description={mayNot ?? texts.beforeHint}
        checked={config.taxes_before_credits}
        disabled={save.isPending || mayNot !== null}
        onChange={({ currentTarget }) => save.mutate(currentTarget.checked)}
      />
      {save.error && (
        <p role="alert" className={styles.error}>
          {showApiText(save.error.message)}
        </p>
      )}
    </Sheet>
  );
}

function formatRate(rate: TaxRateRecord, language: 'en' | 'de'): string {
  const { percentage_value, fixed_value } = rate;
  if (percentage_value !== null) return `${formatQuantity(language, percentage_value)} %`;
  return fixed_value === null ? '–' : formatQuantity(language, fixed_value);
}

export function TaxRateSheet({ sheet, id, onClose }: SheetProps): ReactNode {
  const rates = useGet('/taxes/rates', ratesQuery, { enabled: sheet === 'open' });
  const rate = rates.data?.find((each) => each.id === id);
  if (sheet === 'open') return rate ? <OpenRate rate={rate} onClose={onClose} /> : null;
  return <NewRate onClose={onClose} />;
}

function OpenRate({ rate, onClose }: { rate: TaxRateRecord; onClose: () => void }): ReactNode {
  const texts = useTexts(TAX_TEXTS);
  const language = useLanguage();
  const queries = useQueryClient();
  const attached = useGet('/taxes/associations', tenantQuery);
  const association = attached.data?.items.find(({ tax_rate_id }) => tax_rate_id === rate.id);
  const blocked = useMayNot('tax:write');
  const isActive = rate.tax_rate_status === 'ACTIVE';
  const refresh = () => invalidate(queries, '/taxes');
  const attach = useDeed(async () => {
    if (association) await api.DELETE('/taxes/associations/{id}', { params: { path: { id: association.id } } });
    else await api.POST('/taxes/associations', { body: { tax_rate_code: rate.code, entity_type: 'tenant' } });
  }, refresh);
  const change = useDeed(
    () =>
      api.PUT('/taxes/rates/{id}', {
        params: { path: { id: rate.id } },
        body: { tax_rate_status: isActive ? 'INACTIVE' : 'ACTIVE' },
      }),
    refresh,
  );
  const archive = useDeed(
    () => api.DELETE('/taxes/rates/{id}', { params: { path: { id: rate.id } } }),
    async () => {
      onClose();
      await refresh();
    },
  );
  const failed = attach.error ?? change.error ?? archive.error;
  return (
    <SideSheet
      title={<bdi>{rate.name}</bdi>}
      subtitle={<CopyId id={rate.id} />}
      onClose={onClose}
      footer={
        <>
          <Button
            blocked={blocked ?? (isActive || association ? null : texts.activateFirst)}
            isBusy={attach.isPending}
            onClick={() => attach.mutate(undefined)}
          >
            {association ? texts.detach : texts.attach}
          </Button>
          <Button
            blocked={blocked ?? (association ? texts.isAttached : null)}
            isBusy={change.isPending}
            onClick={() => change.mutate(undefined)}
          >
            {isActive ? texts.deactivate : texts.activate}
          </Button>
          <Button
            isDangerous
            blocked={blocked ?? (association ? texts.isAttached : null)}
            isBusy={archive.isPending}
            onClick={() => archive.mutate(undefined)}
          >
            {texts.archive}
          </Button>
        </>
      }
    >
      {failed && (
        <p role="alert" className={styles.error}>
          {showApiText(failed.message)}
        </p>
      )}
      <Facts
        facts={[
          { label: texts.code, value: <span className="mono">{rate.code}</span> },
          { label: texts.rate, value: formatRate(rate, language) },
          { label: texts.behavior, value: texts[rate.tax_behavior] },
          { label: texts.applies, value: association ? texts.everyone : texts.chosen },
          { label: texts.status, value: texts[rate.tax_rate_status] },
        ]}
      />
      <RecordTools record={rate} path={`/taxes/rates/${rate.id}`} entity_id={rate.id} />
    </SideSheet>
  );
}

function NewRate({ onClose }: { onClose: () => void }): ReactNode {
  const texts = useTexts(TAX_TEXTS);
  const queries = useQueryClient();
  const [name, setName] = useState('');
  const [code, setCode] = useState('');
  const [type, setType] = useState<'percentage' | 'fixed'>('percentage');
  const [value, setValue] = useState('');
  const [behavior, setBehavior] = useState<'exclusive' | 'inclusive'>('exclusive');
  const [isEverywhere, setEverywhere] = useState(true);
  const create = useDeed(
    async () => {
      const kind = type === 'percentage' ? { percentage_value: value } : { fixed_value: value };
      const rate = await readData(
        api.POST('/taxes/rates', { body: { name, code, tax_rate_type: type, tax_behavior: behavior, ...kind } }),
      );
      if (isEverywhere)
        await api.POST('/taxes/associations', { body: { tax_rate_code: rate.code, entity_type: 'tenant' } });
    },
    async () => {
      onClose();
      await invalidate(queries, '/taxes');
    },
  );
  const submit = (event: FormEvent) => {
    event.preventDefault();
    create.mutate(undefined);
  };
  const field = type === 'percentage' ? 'percentage_value' : 'fixed_value';
  return (
    <SideSheet title={texts.createTitle} onClose={onClose}>
      <form className={styles.form} onSubmit={submit}>
        <TextInput
          label={texts.name}
          description={texts.nameHint}
          placeholder="VAT"
          required
          value={name}
          error={findFieldError(create, 'name')}
          onChange={({ currentTarget }) => setName(currentTarget.value)}
        />
        <TextInput
          label={texts.code}
          description={texts.codeHint}
          placeholder="vat_de"
          required
          value={code}
          error={findFieldError(create, 'code')}
          onChange={({ currentTarget }) => setCode(currentTarget.value)}
        />
        <Choice
          label={texts.rate}
          value={type}
          onValue={setType}
          options={[
            { value: 'percentage', label: texts.percentage },
            { value: 'fixed', label: texts.fixed },
          ]}
        />
        <NumberInput
          label={type === 'percentage' ? texts.percent : texts.amount}
          required
          value={value}
          unit={type === 'percentage' ? '%' : ''}
          error={findFieldError(create, field)}
          onValue={setValue}
        />
        <Select
          label={texts.behavior}
          allowDeselect={false}
          value={behavior}
          onChange={(next) => setBehavior(next === 'inclusive' ? 'inclusive' : 'exclusive')}
          data={[
            { value: 'exclusive', label: texts.exclusiveLong },
            { value: 'inclusive', label: texts.inclusiveLong },
          ]}
        />
        <Switch
          label={texts.toEveryone}
          description={texts.toEveryoneHint}
          checked={isEverywhere}
          onChange={({ currentTarget }) => setEverywhere(currentTarget.checked)}
        />
        <FormFoot needs="tax:write" deed={create} fields={['name', 'code', field]} action={texts.createNow} />
      </form>
    </SideSheet>
  );
}
