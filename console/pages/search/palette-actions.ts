/** The actions that the palette offers to the person who is signed in. */
import { useMantineColorScheme } from '@mantine/core';
import { useNavigate, useParams } from '@tanstack/react-router';
import { useFindMayNot } from '../../client/permission.ts';
import { useSession } from '../../client/session.ts';
import { useOpenOverlay } from '../../components/overlays.ts';
import { useChooseLanguage } from '../../shell/language.tsx';
import { LANGUAGES, type Language, useLanguage, useTexts } from '../../texts/texts.ts';
import type { PaletteAction } from './actions.ts';
import { TEXTS } from './texts.ts';

const PLACES = [
  ['home', ''],
  ['customers', 'customers'],
  ['usage', 'usage'],
  ['events', 'events'],
  ['meters', 'meters'],
  ['plans', 'plans'],
  ['subscriptions', 'subscriptions'],
  ['invoices', 'invoices'],
  ['wallets', 'wallets'],
  ['firstBill', 'first-bill'],
  ['apiKeys', 'api-keys'],
  ['webhooks', 'webhooks'],
  ['settingsPlace', 'settings'],
] as const;

const CREATIONS = [
  ['newCustomer', 'customer', 'customers?sheet=new'],
  ['newSubscription', 'subscription', 'subscriptions/new'],
  ['newMeter', 'meter', 'meters/new'],
  ['newPlan', 'plan', 'plans?sheet=new'],
  ['newWallet', 'wallet', 'wallets?sheet=new'],
] as const;

/** Opens a path below the environment, such as `invoices/inv_…` or `plans?sheet=new`; the zone of the page stays. */
export function useOpenPath(): (path: string) => void {
  const { environment_id } = useParams({ from: '/env/$environment_id' });
  const navigate = useNavigate();
  return (path) => {
    const [place = '', query = ''] = path.split('?');
    void navigate({
      to: `/env/${environment_id}${place === '' ? '' : `/${place}`}` as '/',
      search: (({ zone }: { zone?: string }) => ({ zone, ...Object.fromEntries(new URLSearchParams(query)) })) as never,
    });
  };
}

export function usePaletteActions(): PaletteAction[] {
  const texts = useTexts(TEXTS);
  const session = useSession();
  const findMayNot = useFindMayNot();
  const { environment_id } = useParams({ from: '/env/$environment_id' });
  const language = useLanguage();
  const chooseLanguage = useChooseLanguage();
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  const openPath = useOpenPath();
  const navigate = useNavigate();
  const openOverlay = useOpenOverlay();
  const setZone = (zone: 'utc' | 'browser') =>
    void navigate({ to: '.', search: ((old: object) => ({ ...old, zone })) as never });
  return [
    ...CREATIONS.map(([name, resource, path]) => ({
      key: name,
      group: 'create' as const,
      label: texts[name],
      blocked: findMayNot(`${resource}:write`),
      run: () => openPath(path),
    })),
    ...PLACES.map(([name, path]) => ({
      key: name,
      group: 'go' as const,
      label: texts.goTo(texts[name]),
      run: () => openPath(path),
    })),
    ...session.environments
      .filter(({ id }) => id !== environment_id)
      .map(({ id, name, type }) => ({
        key: id,
        group: 'environment' as const,
        label: texts.switchTo(name),
        words: type,
        run: () => void navigate({ to: '/env/$environment_id', params: { environment_id: id } }),
      })),
    ...(['dark', 'light', 'auto'] as const)
      .filter((scheme) => scheme !== colorScheme)
      .map((scheme) => ({
        key: scheme,
        group: 'settings' as const,
        label: texts[scheme],
        run: () => setColorScheme(scheme),
      })),
    ...(Object.entries(LANGUAGES) as [Language, string][])
      .filter(([tag]) => tag !== language)
      .map(([tag, name]) => ({
        key: `language-${tag}`,
        group: 'settings' as const,
        label: texts.speak(name),
        run: () => chooseLanguage(tag),
      })),
    { key: 'utc', group: 'settings', label: texts.utc, run: () => setZone('utc') },
    { key: 'local', group: 'settings', label: texts.local, run: () => setZone('browser') },
    { key: 'keys', group: 'settings', label: texts.keys, run: () => openOverlay?.('keys') },
  ];
}
