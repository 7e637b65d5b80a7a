# Completion of leasehold in fish. In ~/.config/fish/config.fish: leasehold completion fish | source
# `leasehold __complete` returns the candidates.

function __leasehold_complete
    set -l words (commandline -opc)
    set -e words[1]
    set -l begun (commandline -ct)
    set -l lines (command leasehold __complete -- $words "$begun" 2>/dev/null)
    set -l before (string match -r '^--[^=]+=' -- $begun)
    switch "$lines[1]"
        case words
            set -e lines[1]
            printf '%s\n' $lines
        case file
            string replace -r '^' -- "$before" (__fish_complete_path (string replace -- "$before" '' $begun))
        case directory
            string replace -r '^' -- "$before" (__fish_complete_directories (string replace -- "$before" '' $begun))
        case command
            complete -C "$begun"
    end
end
complete -c leasehold -f -a '(__leasehold_complete)'
