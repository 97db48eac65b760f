/** A stored price: its charge can be edited as a draft and published as a new version. */
import { useQueryClient } from '@tanstack/react-query';
import { Link, useNavigate, useParams, useSearch } from '@tanstack/react-router';
import { type ReactNode, useState } from 'react';
import { api, readData } from '../../client/client.ts';
import { useMayNot } from '../../client/permission.ts';
import { invalidate, useGet } from '../../client/queries.ts';
import { Button, buttonClass } from '../../components/button.tsx';
import { Chip } from '../../components/chip.tsx';
import { Confirm } from '../../components/confirm.tsx';
import { CopyId } from '../../components/copy.tsx';
import { useDeed } from '../../components/form.tsx';
import { useShowMessage } from '../../components/message.ts';
import { PageHead } from '../../components/page.tsx';
import { RecordTools } from '../../components/record-tools.tsx';
import { SideSheet, WithSheet } from '../../components/side-sheet.tsx';
import { Loaded } from '../../components/states.tsx';
import { formatInstant } from '../../figures/format.ts';
import { useZone } from '../../figures/when.tsx';
import { useLanguage, useTexts } from '../../texts/texts.ts';
import { type StoredPrice, startRollOut } from './plan-queries.ts';
import { buildPriceChange, isChargeChanged, type PriceDraft, toDraft } from './price-draft.ts';
import { PriceEditor } from './price-editor.tsx';
import { PRICE_TEXTS } from './price-texts.ts';
import { PriceVersions } from './price-versions.tsx';
import { PublishDialog } from './publish-dialog.tsx';
import { useRunningCount } from './running-count.ts';

const FROM = '/env/$environment_id/plans/$plan_id/prices/$price_id';

export function PricePage(): ReactNode {
  const { price_id } = useParams({ from: FROM });
  const price = useGet('/prices/{id}', { path: { id: price_id } });
  return (
    <Loaded query={price} record_id={price_id} rows={8}>
      {(stored) => <StoredPriceEditor key={stored.id} price={stored} />}
    </Loaded>
  );
}

function StoredPriceEditor({ price }: { price: StoredPrice }): ReactNode {
  const texts = useTexts(PRICE_TEXTS);
  const { plan_id } = useParams({ from: FROM });
  const { sheet } = useSearch({ from: FROM });
  const navigate = useNavigate({ from: FROM });
  const language = useLanguage();
  const zone = useZone();
  const runningCount = useRunningCount(plan_id);
  const [draft, setDraft] = useState<PriceDraft>(() => toDraft(price));
  const [dialog, setDialog] = useState<'publish' | 'end' | null>(null);
  const changes = buildPriceChange(draft, price);
  const isChanged = Object.keys(changes).length > 0;
  const name = price.display_name ?? texts.unnamed;
  const openSheet = (next?: 'record') =>
    void navigate({ search: (old) => ({ ...old, sheet: next }), resetScroll: false });
  const publish = usePublish(price, draft);
  const mayNot = useMayNot('price:write');
  const endBlocked =
    mayNot ?? (price.end_date === null ? null : texts.endsAt(formatInstant(language, price.end_date, zone)));
  const blocked = endBlocked ?? (price.price_unit === null ? null : texts.customUnit(price.price_unit));
  return (
    <WithSheet
      sheet={
        sheet === 'record' && (
          <SideSheet title={texts.record} subtitle={<CopyId id={price.id} />} onClose={() => openSheet()}>
            <RecordTools record={price} path={`/prices/${price.id}`} entity_id={price.id} />
          </SideSheet>
        )
      }
    >
      <PriceEditor
        head={
          <>
            <PriceHead
              price={price}
              name={name}
              endBlocked={endBlocked}
              onRecord={() => openSheet('record')}
              onEnd={() => setDialog('end')}
            />
            {blocked && <p className="muted">{blocked}</p>}
          </>
        }
        draft={draft}
        onDraft={setDraft}
        isStored
        error={publish.error}
        blocked={blocked}
        idle={isChanged ? null : texts.unchanged}
        note={isChanged ? texts.notInEffect : texts.unchanged}
        runningCount={runningCount}
        onPublish={() => setDialog('publish')}
        discard={
          isChanged ? (
            <Button onClick={() => setDraft(toDraft(price))}>{texts.discard}</Button>
          ) : (
            <Link from={FROM} to="/env/$environment_id/plans/$plan_id" className={buttonClass}>
              {texts.cancel}
            </Link>
          )
        }
      />
      <PriceVersions price={price} />
      {dialog === 'publish' && (
        <PublishDialog
          startsAt={draft.starts_at}
          kind={isChargeChanged(draft, price) ? 'version' : 'name'}
          runningCount={runningCount}
          onPublish={(isRolledOut) => publish.mutateAsync(isRolledOut)}
          onClose={() => setDialog(null)}
        />
      )}
      {dialog === 'end' && <EndDialog price={price} name={name} onClose={() => setDialog(null)} />}
    </WithSheet>
  );
}

/** Publishes the draft of a stored price, rolls it out to running subscriptions on request, and opens the plan. */
function usePublish(price: StoredPrice, draft: PriceDraft) {
  const texts = useTexts(PRICE_TEXTS);
  const { plan_id } = useParams({ from: FROM });
  const queries = useQueryClient();
  const openPlan = useOpenPlan();
  const showMessage = useShowMessage();
  return useDeed(async (isRolledOut: boolean) => {
    await readData(
      api.PUT('/prices/{id}', { params: { path: { id: price.id } }, body: buildPriceChange(draft, price) as never }),
    );
    if (isRolledOut) await startRollOut(queries, plan_id);
    await invalidate(queries, '/plans', '/prices');
    showMessage(texts.published(draft.display_name || (price.display_name ?? texts.unnamed)));
    await openPlan();
  });
}

function useOpenPlan(): () => Promise<void> {
  const navigate = useNavigate({ from: FROM });
  return () => navigate({ to: '/env/$environment_id/plans/$plan_id', search: (old) => ({ zone: old.zone }) });
}

type PriceHeadProps = {
  price: StoredPrice;
  name: string;
  /** The reason why the price cannot be ended. */
  endBlocked: string | null;
  onRecord: () => void;
  onEnd: () => void;
};

function PriceHead({ price, name, endBlocked, onRecord, onEnd }: PriceHeadProps): ReactNode {
  const texts = useTexts(PRICE_TEXTS);
  const { plan_id } = useParams({ from: FROM });
  const plan = useGet('/plans/{id}', { path: { id: plan_id } });
  const meter = useGet('/meters/{id}', { path: { id: price.meter_id ?? '' } }, { enabled: price.meter_id !== null });
  return (
    <PageHead
      title={name}
      status={price.end_date !== null && <Chip>{texts.ended}</Chip>}
      subtitle={
        <>
          {plan.data && (
            <Link from={FROM} to="/env/$environment_id/plans/$plan_id">
              <bdi>{plan.data.name}</bdi>
            </Link>
          )}
          {meter.data && (
            <>
              {' · '}
              {texts.meter}{' '}
              <Link from={FROM} to="/env/$environment_id/meters/$meter_id" params={{ meter_id: meter.data.id }}>
                <bdi>{meter.data.name}</bdi>
              </Link>
            </>
          )}
          {' · '}
          <PriceTermsLine price={price} />
        </>
      }
      actions={
        <>
          <Button onClick={onRecord}>{texts.record}</Button>
          <Button isDangerous blocked={endBlocked} onClick={onEnd}>
            {texts.endPrice}
          </Button>
        </>
      }
    />
  );
}

function EndDialog({ price, name, onClose }: { price: StoredPrice; name: string; onClose: () => void }): ReactNode {
  const texts = useTexts(PRICE_TEXTS);
  const queries = useQueryClient();
  const openPlan = useOpenPlan();
  return (
    <Confirm
      needs="price:write"
      title={texts.endTitle(name)}
      action={texts.endAction}
      isDangerous
      onClose={onClose}
      onConfirm={async () => {
        await api.DELETE('/prices/{id}', { params: { path: { id: price.id } } });
        await invalidate(queries, '/plans', '/prices');
        await openPlan();
      }}
    >
      <p>{texts.endWords}</p>
    </Confirm>
  );
}

function PriceTermsLine({ price }: { price: StoredPrice }): ReactNode {
  const texts = useTexts(PRICE_TEXTS);
  const { billing_period, billing_period_count, invoice_cadence, currency } = price;
  const period =
    billing_period_count === 1
      ? texts.period(billing_period)
      : texts.every(String(billing_period_count), billing_period);
  return `${period}, ${invoice_cadence === 'ARREAR' ? texts.arrears : texts.advance}, ${currency.toUpperCase()}`;
}
