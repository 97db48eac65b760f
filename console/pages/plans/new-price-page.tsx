/** A new price of a plan. */

import { useQueryClient } from '@tanstack/react-query';
import { Link, useNavigate, useParams } from '@tanstack/react-router';
import { type ReactNode, useState } from 'react';
import { api, readData } from '../../client/client.ts';
import { useMayNot } from '../../client/permission.ts';
import { invalidate, useGet } from '../../client/queries.ts';
import { buttonClass } from '../../components/button.tsx';
import { useDeed } from '../../components/form.tsx';
import { useShowMessage } from '../../components/message.ts';
import { PageHead } from '../../components/page.tsx';
import { Loaded } from '../../components/states.tsx';
import { useTexts } from '../../texts/texts.ts';
import { startRollOut } from './plan-queries.ts';
import { buildPriceRequest, createDraft } from './price-draft.ts';
import { PriceEditor } from './price-editor.tsx';
import { PRICE_TEXTS } from './price-texts.ts';
import { PublishDialog } from './publish-dialog.tsx';
import { useRunningCount } from './running-count.ts';

const FROM = '/env/$environment_id/plans/$plan_id/prices/new';

export function NewPricePage(): ReactNode {
  const texts = useTexts(PRICE_TEXTS);
  const showMessage = useShowMessage();
  const { plan_id } = useParams({ from: FROM });
  const navigate = useNavigate({ from: FROM });
  const queries = useQueryClient();
  const mayNot = useMayNot('price:write');
  const plan = useGet('/plans/{id}', { path: { id: plan_id } });
  const runningCount = useRunningCount(plan_id);
  const currency = plan.data?.prices?.[0]?.currency;
  const [draft, setDraft] = useState(() => createDraft(currency ?? 'usd'));
  const [isPublishing, setPublishing] = useState(false);
  const [wasTouched, setTouched] = useState(false);
  // A plan mostly sells in one currency: that of its other prices.
  const shown = wasTouched || !currency ? draft : { ...draft, currency };
  const publish = useDeed(async (isRolledOut: boolean) => {
    const body = buildPriceRequest(shown, plan_id);
    const price = await readData(api.POST('/prices', { body: body as never }));
    if (isRolledOut) await startRollOut(queries, plan_id);
    await invalidate(queries, '/plans', '/prices', '/meters');
    showMessage(texts.published(price.display_name ?? texts.newPrice));
    await navigate({ to: '/env/$environment_id/plans/$plan_id', search: (old) => ({ zone: old.zone }) });
  });
  if (plan.isError)
    return (
      <Loaded query={plan} record_id={plan_id}>
        {() => null}
      </Loaded>
    );
  return (
    <>
      <PriceEditor
        head={
          <PageHead
            title={shown.display_name === '' ? texts.newPrice : shown.display_name}
            subtitle={plan.data && <bdi>{plan.data.name}</bdi>}
          />
        }
        draft={shown}
        onDraft={(next) => {
          setTouched(true);
          setDraft(next);
        }}
        isStored={false}
        error={publish.error}
        blocked={mayNot}
        note={texts.notInEffect}
        runningCount={runningCount}
        onPublish={() => setPublishing(true)}
        discard={
          <Link from={FROM} to="/env/$environment_id/plans/$plan_id" className={buttonClass}>
            {texts.discard}
          </Link>
        }
      />
      {isPublishing && (
        <PublishDialog
          startsAt={shown.starts_at}
          kind="new"
          runningCount={runningCount}
          onPublish={(isRolledOut) => publish.mutateAsync(isRolledOut)}
          onClose={() => setPublishing(false)}
        />
      )}
    </>
  );
}
