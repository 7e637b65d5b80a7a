/** Settings: operators, the operator's own sign-in, key slots, backups, and the nodes of the server. */
import { Link, useSearchParams } from 'wouter';
import { PageHeading } from '../../components/page-heading.tsx';
import { AboutSection } from './about-section.tsx';
import { BackupSection } from './backup-section.tsx';
import { KeySection } from './key-section.tsx';
import { OperatorsSection } from './operators-section.tsx';
import { SignInSection } from './sign-in-section.tsx';

const SECTIONS = [
  { section: 'operators', title: 'Operators', Section: OperatorsSection },
  { section: 'sign-in', title: 'My sign-in', Section: SignInSection },
  { section: 'keys', title: 'Keys', Section: KeySection },
  { section: 'backups', title: 'Backups', Section: BackupSection },
  { section: 'about', title: 'Nodes and version', Section: AboutSection },
] as const;

export function SettingsPage() {
  const [parameters] = useSearchParams();
  const wanted = parameters.get('section');
  const { section: current, Section } = SECTIONS.find(({ section }) => section === wanted) ?? SECTIONS[0];
  return (
    <>
      <PageHeading title="Settings" />
      <nav className="views" aria-label="Sections of the settings">
        {SECTIONS.map(({ section, title }) => (
          <Link
            key={section}
            href={`/settings?section=${section}`}
            aria-current={section === current ? 'page' : undefined}
          >
            {title}
          </Link>
        ))}
      </nav>
      <Section />
    </>
  );
}
