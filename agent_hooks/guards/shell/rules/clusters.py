"""Rules about clusters and virtual machines: what runs in them, and the machines themselves."""

from __future__ import annotations

from agent_hooks.guards.shell.rules.outside import LOCAL_CLUSTER, Loss, losses

_WHY = "removes resources of a cluster, or takes them out of service"
_VM = "removes or cuts off a virtual machine"
RULES = losses(
    (
        Loss(
            "kubernetes",
            "kubectl k oc",
            (
                r"\bdelete\b(?!.* (?:pods?|po|jobs?)(?:/\S+)?(?: (?!--all|-l|-A|--force)\S+)*$)|"
                r"\bscale\b.*--replicas[= ]0\b|\b(?:drain|taint|deschedule)\b|\breplace\b.*--force|"
                r"\bapply\b.*--prune\b|\bpatch\b.*finalizers|\badm (?:drain|prune|reset)|\bset image\b.*--all\b|"
                r"\b(?:deploy|dc|rollout)\b.*\bcancel\b"
            ),
            _WHY,
            rf"\bannotate|\bkubectl config delete-|{LOCAL_CLUSTER}",
            whole=True,
        ),
        Loss("kubernetes", "kubectx kubens kubie", r" -d\b|\bdelete\b", _WHY),
        Loss(
            "kubernetes",
            "helm helmfile helmsman",
            (
                r"^helm (?:-\S+ )*(?:uninstall|delete|un|del|plugin remove)\b|^helmfile\b.* (?:destroy|delete)\b|"
                r"^helmsman .*--destroy"
            ),
            _WHY,
            LOCAL_CLUSTER,
        ),
        Loss(
            "kubernetes",
            (
                "eksctl kind k3d minikube microk8s k0s k0sctl rke rke2 kops kubeadm talosctl rancher istioctl "
                "linkerd cilium kubeseal crossplane vcluster clusterctl oc-mirror ctlptl colima kustomize-reset "
                "kwokctl"
            ),
            (
                r"^\S+ (?:-\S+ )*(?:\S+ )?(?:delete|del|uninstall|reset|destroy|remove|rm|decommission|purge)\b|"
                r"\bdelete-all\b"
            ),
            _WHY,
            # One cluster in containers of this machine can be made again.
            (
                r"\bget\b|\blist\b|^kind delete cluster(?: --name[= ]\S+| -n \S+)?$|^k3d cluster delete(?: (?!-)\S+)?$"
                r"|^minikube delete(?: (?:-p|--profile)[= ]\S+)?$"
            ),
        ),
        Loss(
            "kubernetes",
            "k3s-uninstall.sh k3s-agent-uninstall.sh k3s-killall.sh rke2-uninstall.sh rke2-killall.sh",
            r"",
            _WHY,
        ),
        Loss(
            "kubernetes",
            "nomad consul etcdctl etcdutl serf zkcli zkcli.sh patronictl",
            (
                r"\b(?:stop|system gc|purge|kv delete|leave|force-leave|del|member remove|defrag|compact|compaction|"
                r"node drain|namespace delete|snapshot restore|acl \w+ delete|acl (?:policy|role|token) delete|"
                r"acl bootstrap|volume (?:delete|deregister|detach)|intention delete|deregister|remove|deleteall|"
                r"reinit|failover|switchover|operator raft remove-peer|var purge|config delete|auth disable|"
                r"user delete|role delete)\b"
            ),
            _WHY,
            r"\bstatus\b|\blist\b",
        ),
        Loss(
            "kubernetes",
            "docker podman nerdctl",
            (
                r"^\S+ (?:-\S+ )*(?:stack (?:rm|remove|down)|service (?:rm|remove)|swarm leave\b.*(?:-f|--force)|"
                r"node (?:rm|remove|demote)|secret (?:rm|remove)|config (?:rm|remove)|namespace (?:rm|remove)|"
                r"machine (?:rm|reset)|system reset|pod (?:rm\b.*(?:-\w*[fa]|--all|--force)|prune|kill))\b"
            ),
            _WHY,
        ),
        Loss(
            "docker",
            "docker podman nerdctl buildah",
            (
                r"^\S+ (?:-\S+ )*(?:container )?rm\b.* (?:-\w*a\w*|--all)(?= |$)|^\S+ (?:compose|"
                r"stack)\b.* rm\b.* -\w*v\w*|^nerdctl (?:-\S+ )*compose\b.*\bdown\b.*(?: -v\b|--volumes)|"
                r"\bvolume (?:rm|remove|prune)\b|\bsystem prune\b"
            ),
            "removes containers or volumes, and the data in them",
            r"\bvolume (?:rm|remove)(?: -f| --force)?(?: \S*[_-]test(?:[_-]\S*)?)+$",
        ),
        Loss(
            "docker",
            "docker podman nerdctl",
            (
                r"^\S+ (?:-\S+ )*(?:container )?run\b.*(?:--privileged|--pid[= ]host|--cap-add[= ](?:ALL|SYS_ADMIN|"
                r"SYS_PTRACE|SYS_MODULE)|docker\.sock|podman\.sock|containerd\.sock|(?:-v|--volume|source|src|"
                r"-v ?)[= ]?(?:/|/etc|/root|/var|/home|/usr|/boot|/proc|/sys|/dev)(?::|,)|"
                r"--security-opt[= ](?:seccomp|apparmor)[=:]unconfined|--device[= ]/dev/(?:sd|nvme|mem|kmem|dm-|vd)|"
                r"--userns[= ]host|--ipc[= ]host)"
            ),
            "runs a container that rules the whole machine",
        ),
        Loss(
            "docker",
            "crictl ctr",
            (
                r"\b(?:rmp|rm|rmi|rmi --all|stopp|(?:images?|containers?|c|i|tasks?|t|snapshots?|content|"
                r"namespaces?) (?:rm|remove|delete|del|prune))\b"
            ),
            "removes containers or images",
        ),
        Loss(
            "cloud",
            (
                "virsh qm pct vboxmanage prlctl vmrun multipass lxc incus vagrant limactl lima orb xe govc esxcli "
                "tart utmctl virt-install vzctl cloud-hypervisor bhyvectl vim-cmd qemu-img pvesh pveum machinectl "
                "orbctl"
            ),
            (
                r"\b(?:undefine|destroy|unregistervm|unregister|delete\w*|purge|factory-reset|vol-delete|vol-wipe|"
                r"pool-delete|pool-destroy|snapshot-delete|snapshot-revert|remove\w*|deletevm|deletemedium|"
                r"closemedium|rm|vm\.destroy|rollback|resize .*--shrink|power-?off)\b|\bvm-destroy"
            ),
            _VM,
            r"\blist\b|\bvagrant destroy --help",
        ),
    )
)
