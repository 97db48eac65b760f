import type { ReactNode } from 'react';
import { PageHead } from '../../components/page.tsx';

export function SettingsPage(): ReactNode {
  return <PageHead title="SettingsPage" />;
}
